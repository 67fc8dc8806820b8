#include "attnjit/user_expression.hpp"

#include <string>

#include "catch.hpp"

namespace {

using attnjit::find_expression_fault;

TEST_CASE("expressions of every form that stays in its slot are taken") {
  for (const char* text : {
           "true",
           "q >= k",
           "q - k < 128 && (k % 2 == 0 || h == 3)",
           "  q\n\t>= k  // a comment with ) ] } \" ' # in it\n",
           "q >= k /* ( [ { \n # \" */ && true",
           "q /*/ ( */ > k",
           "fminf(score, 30.0f)",
           "[&] { const int distance = q - k; return distance < 8; }()",
           "[=](int step) { for (int i = 0; i < step; ++i) if (k == q - i * i) return true; return "
           "false; }(5)",
           "float{score} + (k < 4 ? 1.0f : 0.0f)",
           "k < 4 ? true : q > k",
           "a[b < c ? 1 : 0](h, q)",
           "bool(q < k) == bool(q > k)",
           "true //",
       }) {
    CHECK(find_expression_fault(text) == "");
  }
  CHECK(find_expression_fault(std::string(attnjit::most_expression_characters, '1')) == "");
}

TEST_CASE("what could reach beyond its slot is refused with its place") {
  CHECK(find_expression_fault("") == "1:1: there is no expression");
  CHECK(find_expression_fault(" \n\t ") == "2:3: there is no expression");
  CHECK(find_expression_fault("// q > k") == "1:9: there is no expression");
  CHECK(find_expression_fault("true); } int x = f(1") == "1:5: ')' closes nothing");
  CHECK(find_expression_fault("true}") == "1:5: '}' closes nothing");
  CHECK(find_expression_fault("k]") == "1:2: ']' closes nothing");
  CHECK(find_expression_fault("(q > k") == "1:1: '(' is not closed");
  CHECK(find_expression_fault("q > k && [&] { return (1") == "1:23: '(' is not closed");
  CHECK(find_expression_fault("(q > k]") == "1:7: ']' may not close the '(' of 1:1");
  CHECK(find_expression_fault("f({\n1)}") == "2:2: ')' may not close the '{' of 1:3");
  CHECK(find_expression_fault("q > k;") == "1:6: ';' may stand inside of a lambda's braces only");
  CHECK(find_expression_fault("(q; k)") == "1:3: ';' may stand inside of a lambda's braces only");
  CHECK(find_expression_fault("q > k, true") == "1:6: ',' may stand inside of brackets only");
  CHECK(find_expression_fault("q >\n#include \"x\"\nk") ==
        "2:1: a preprocessor line may not be used");
  CHECK(find_expression_fault("q >\n  # define k 1\nk") ==
        "2:3: a preprocessor line may not be used");
  CHECK(find_expression_fault("%:define q k\n1") == "1:1: \"%:\" may not be used");
  CHECK(find_expression_fault("q > <%") == "1:5: \"<%\" may not be used");
  CHECK(find_expression_fault("1 %> int x;") == "1:3: \"%>\" may not be used");
  CHECK(find_expression_fault("a<:0:>") == "1:2: \"<:\" may not be used");
  CHECK(find_expression_fault("q > k ?"
                              "?/\n 1") ==
        "1:7: \"?"
        "?\" may not be used");
  CHECK(find_expression_fault("1 // ?"
                              "?/") ==
        "1:6: \"?"
        "?\" may not be used");
  CHECK(find_expression_fault("q > k \\\n") == "1:7: a backslash may not be used");
  CHECK(find_expression_fault("q > k // \\") == "1:10: a backslash may not be used");
  CHECK(find_expression_fault("q > k /* \\ */") == "1:10: a backslash may not be used");
  CHECK(find_expression_fault("q > k /* )") == "1:7: the comment does not end");
  CHECK(find_expression_fault("q > k /*/") == "1:7: the comment does not end");
  CHECK(find_expression_fault("\"text\"[k] == 't'") == "1:1: a quote may not be used");
  CHECK(find_expression_fault("k == 'x'") == "1:6: a quote may not be used");
  CHECK(find_expression_fault("k < 1'000") == "1:6: a quote may not be used");
  CHECK(find_expression_fault("R\"(\n)\"") == "1:2: a quote may not be used");
  CHECK(find_expression_fault("q > k\r\n") == "1:6: the character \\x0d may not be used");
  CHECK(find_expression_fault("q > \xc3\xa4") == "1:5: the character \\xc3 may not be used");
  CHECK(find_expression_fault("1 // \xe2\x80\xa8") == "1:6: the character \\xe2 may not be used");
  CHECK(find_expression_fault(std::string("q\0k", 3)) ==
        "1:2: the character \\x00 may not be used");
  CHECK(find_expression_fault(std::string(attnjit::most_expression_characters + 1, '1')) ==
        "has more than 4000 characters");
  CHECK(find_expression_fault(std::string(4000, '(')) == "1:4000: '(' is not closed");
}

}  // namespace
