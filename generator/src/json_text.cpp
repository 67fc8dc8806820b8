#include "json_text.hpp"

#include <set>
#include <utility>

#include "attnjit/shown_text.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

constexpr std::size_t most_message_bytes = 300;
constexpr std::size_t most_repeated = 20;

// Walks the text once without keeping it, for what the parsed value no longer shows. The parser
// calls these methods, which is why they are named and typed as they are.
class TextWatch {
 public:
  explicit TextWatch(int deepest_nesting) : deepest_nesting_(deepest_nesting) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(json::number_integer_t) { return true; }
  bool number_unsigned(json::number_unsigned_t) { return true; }
  bool number_float(json::number_float_t, const std::string&) { return true; }
  bool string(const std::string&) { return true; }
  bool binary(const json::binary_t&) { return true; }

  bool start_object(std::size_t) {
    enter();
    objects_.emplace_back();
    return true;
  }

  bool key(const std::string& key) {
    objects_.back().key = key;
    if (!objects_.back().keys.insert(key).second && repeated_.size() < most_repeated) {
      repeated_.push_back(field());
    }
    return true;
  }

  bool end_object() {
    objects_.pop_back();
    return end_array();
  }

  bool start_array(std::size_t) {
    enter();
    return true;
  }

  bool end_array() {
    --depth_;
    return true;
  }

  template <typename Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& error) {
    // 406: a number beyond the range of double.
    const bool is_number = error.id == 406;
    throw JsonTextError(is_number ? JsonFault::number_out_of_range : JsonFault::malformed, field(),
                        error.what());
  }

  std::vector<std::string> take_repeated() { return std::move(repeated_); }

 private:
  struct OpenObject {
    std::string key;  // being read
    std::set<std::string> keys;
  };

  void enter() {
    if (depth_ > deepest_nesting_) {
      throw JsonTextError(JsonFault::nested_too_deeply, field(), "nested too deeply");
    }
    ++depth_;
  }

  std::string field() const {
    std::string path;
    for (const OpenObject& object : objects_) {
      path += path.empty() || object.key.empty() ? "" : ".";
      path += object.key;
    }
    return path;
  }

  int deepest_nesting_;
  int depth_ = 0;
  std::vector<OpenObject> objects_;
  std::vector<std::string> repeated_;
};

}  // namespace

JsonTextError::JsonTextError(JsonFault fault, std::string field, const std::string& message)
    : std::runtime_error(shown_text(message, most_message_bytes)),
      fault_(fault),
      field_(std::move(field)) {}

ParsedJson parse_json_text(std::string_view text, int deepest_nesting) {
  TextWatch watch(deepest_nesting);
  json::sax_parse(text, &watch);
  return {json::parse(text), watch.take_repeated()};
}

}  // namespace attnjit
