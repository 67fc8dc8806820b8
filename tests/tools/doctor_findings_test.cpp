#include "doctor_findings.hpp"

#include <string>
#include <vector>

#include "catch.hpp"

namespace attnjit {

TEST_CASE("doctor has a problem with a tuning table that cannot be read, and names it") {
  CHECK(examine_tuning_tables(embedded_tuning_tables()).verdict == Verdict::good);
  const std::vector<EmbeddedFile> files = {{"h200.json", "{"}};
  const Finding finding = examine_tuning_tables(read_tuning_tables(files));
  CHECK(finding.subject == "tuned");
  CHECK(finding.verdict == Verdict::problem);
  CHECK(finding.text.find("h200.json: is not JSON") != std::string::npos);
}

}  // namespace attnjit
