#include "prepared_table.hpp"

#include <set>
#include <string>
#include <type_traits>

#include "catch.hpp"

using namespace attnjit;

namespace {

// Another value of any field.
template <typename Field>
void change(Field& field) {
  if constexpr (std::is_same_v<Field, std::string>) {
    field += "x";
  } else if constexpr (std::is_same_v<Field, bool>) {
    field = !field;
  } else {
    field = static_cast<Field>(static_cast<int>(field) + 1);
  }
}

}  // namespace

TEST_CASE("kernels are found by every field of their descriptor and by their device") {
  PreparedTable<int> table;
  const AttentionDescriptor descriptor;
  table.add(descriptor, 0, std::make_shared<int>(7));
  REQUIRE(table.find(descriptor, 0) != nullptr);
  CHECK(*table.find(descriptor, 0) == 7);
  CHECK(table.find(descriptor, 1) == nullptr);

  std::set<std::size_t> hashes = {hash_of(descriptor)};
  int fields = 0;
  AttentionDescriptor other;
  for_each_field(other, [&](const char* name, auto& field) {
    INFO(name);
    const auto before = field;
    change(field);
    CHECK(table.find(other, 0) == nullptr);
    CHECK(hashes.insert(hash_of(other)).second);
    table.add(other, 0, std::make_shared<int>(++fields));
    CHECK(*table.find(other, 0) == fields);
    field = before;
  });
  CHECK(*table.find(descriptor, 0) == 7);
}

TEST_CASE("of two threads that prepare one descriptor, both get what the first added") {
  PreparedTable<int> table;
  const auto first = table.add({}, 0, std::make_shared<int>(1));
  CHECK(table.add({}, 0, std::make_shared<int>(2)) == first);
}
