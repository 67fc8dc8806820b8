import unittest

import check_fixture


class LayersTest(check_fixture.CheckTest):
    check = "check_layers"

    def setUp(self):
        super().setUp()
        self.write("templates/device/numeric_types.cuh", "")
        self.write("templates/interface/decode_arguments.h", "")
        self.write("generator/include/attnjit/descriptor.hpp", "")
        self.write("generator/src/names.hpp", "")
        self.write("cache/include/attnjit/disk_cache.hpp", "")

    def test_accepts_what_the_table_of_folders_allows(self):
        self.write("templates/kernels/decode.cu",
                   '#include "device/numeric_types.cuh"\n#include "interface/decode_arguments.h"\n')
        self.write("generator/src/render.cpp",
                   '#include <fmt/format.h>\n#include <nlohmann/json.hpp>\n#include <string>\n'
                   '#include "attnjit/descriptor.hpp"\n#include "names.hpp"\n'
                   '#include "interface/decode_arguments.h"\n')
        self.write("cache/src/disk_cache.cpp", '#include <sys/file.h>\n#include <xxhash.h>\n')
        self.write("runtime/src/provider.cpp",
                   '#include <cuda.h>\n#include <dlfcn.h>\n#include <nvrtc.h>\n'
                   '#include "attnjit/descriptor.hpp"\n#include "attnjit/disk_cache.hpp"\n')
        self.assert_passes()

    def test_rejects_cuda_in_the_generator(self):
        self.write("generator/src/render.cpp", "#include <string>\n#include <cuda.h>\n")
        self.assert_reports("generator/src/render.cpp:2: generator/ includes cuda.h of cuda")

    def test_rejects_kernels_in_the_cache(self):
        self.write("cache/src/key.cpp", '#include "attnjit/descriptor.hpp"\n')
        self.assert_reports("cache/src/key.cpp:1: cache/ includes attnjit/descriptor.hpp of gen")

    def test_rejects_fmt_in_the_cache(self):
        self.write("cache/src/key.cpp", "#include <fmt/format.h>\n")
        self.assert_reports("cache/src/key.cpp:1: cache/ includes fmt/format.h of fmt")

    def test_rejects_device_code_in_host_code(self):
        self.write("runtime/src/launch.cpp", '#include "device/numeric_types.cuh"\n')
        self.assert_reports("runtime/src/launch.cpp:1: runtime/ includes device/numeric_types.cuh")

    def test_rejects_the_standard_library_in_templates(self):
        self.write("templates/device/math.cuh", "#include <type_traits>\n")
        self.assert_reports("templates/device/math.cuh:1: templates/ includes type_traits of std")

    def test_rejects_a_library_that_no_folder_may_use(self):
        self.write("runtime/src/launch.cpp", "#include <boost/format.hpp>\n")
        self.assert_reports("runtime/src/launch.cpp:1: runtime/ includes boost/format.hpp of an")

    def test_rejects_private_headers_of_another_folder_and_missing_ones(self):
        self.write("cache/src/key.cpp", '#include "nowhere.hpp"\n')
        self.assert_reports('cache/src/key.cpp:1: "nowhere.hpp" is no file of the project')

    def test_rejects_third_party_headers_in_a_public_header(self):
        for line, header in enumerate(("nlohmann/json.hpp", "fmt/format.h"), start=1):
            self.write("generator/include/attnjit/plan.hpp",
                       "\n" * (line - 1) + f"#include <{header}>\n")
            self.assert_reports(f"generator/include/attnjit/plan.hpp:{line}: public header "
                                f"includes {header}")

    def test_rejects_cuda_and_xxhash_in_a_public_header(self):
        self.write("runtime/include/attnjit/launch.hpp", "#include <cuda.h>\n#include <nvrtc.h>\n")
        self.write("cache/include/attnjit/key.hpp", "#include <xxhash.h>\n")
        self.assert_reports("cache/include/attnjit/key.hpp:1: public header includes xxhash.h",
                            "runtime/include/attnjit/launch.hpp:1: public header includes cuda.h",
                            "runtime/include/attnjit/launch.hpp:2: public header includes nvrtc.h")


unittest.main()
