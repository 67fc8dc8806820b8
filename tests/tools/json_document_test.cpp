#include "json_document.hpp"

#include "catch.hpp"

namespace attnjit {

using Json = nlohmann::ordered_json;

TEST_CASE("a path of UTF-8 is the text that it is") {
  Json json = Json::object();
  set_path(json, "path", "/tmp/Müller \"x\"");
  CHECK(json == Json({{"path", "/tmp/Müller \"x\""}}));
}

TEST_CASE("of a path that is no UTF-8 all bytes can be had back") {
  Json json = Json::object();
  set_path(json, "path", "/a\xff\\xff");
  CHECK(json.at("path") == "/a\\xff\\xff");
  CHECK(json.at("path_hex") == "2f61ff5c786666");
  CHECK(to_line(json) == R"({"path":"/a\\xff\\xff","path_hex":"2f61ff5c786666"})");
}

TEST_CASE("malformed UTF-8 in any text of a document is escaped, not lost") {
  const Json json = {{"list", {"good", "b\xc3"}}, {"number", 1}};
  CHECK(to_line(json) == R"({"list":["good","b\\xc3"],"number":1})");
}

}  // namespace attnjit
