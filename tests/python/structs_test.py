import ctypes
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import python_fixture

from attnjit import _structs, errors, tensors

STRUCTS = {
    "attnjit_miss": _structs.Miss,
    "attnjit_runtime_options": _structs.RuntimeOptions,
    "attnjit_tensor": _structs.Tensor,
    "attnjit_plan_options": _structs.PlanOptions,
    "attnjit_decode_call": _structs.DecodeCall,
    "attnjit_prefill_call": _structs.PrefillCall,
    "attnjit_prefill_split": _structs.PrefillSplit,
    "attnjit_sparse_mla_call": _structs.SparseMlaCall,
    "attnjit_append_kv_cache_call": _structs.AppendKvCacheCall,
    "attnjit_partial_attention": _structs.PartialAttention,
    "attnjit_merge_states_call": _structs.MergeStatesCall,
}
HEADER = python_fixture.HEADERS / "attnjit" / "attnjit.h"
COMPILER = shutil.which("cc")


def layout_program():
    """A C program that prints `struct field offset size` of every field, and `struct size`."""
    lines = ["#include <attnjit/attnjit.h>", "#include <stdio.h>", "int main(void) {"]
    for name, kind in STRUCTS.items():
        lines.append(f'printf("{name} - 0 %zu\\n", sizeof({name}));')
        for field, *_ in kind._fields_:
            lines.append(f'printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), '
                         f"sizeof((({name}*)0)->{field}));")
    return "\n".join([*lines, "}", ""])


def mirrored_layout():
    lines = []
    for name, kind in STRUCTS.items():
        lines.append(f"{name} - 0 {ctypes.sizeof(kind)}")
        for field, *_ in kind._fields_:
            place = getattr(kind, field)
            lines.append(f"{name} {field} {place.offset} {place.size}")
    return lines


class StructsTest(unittest.TestCase):
    @unittest.skipUnless(COMPILER, "no C compiler `cc`")
    def test_structs_lie_as_the_c_compiler_lays_them(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder) / "layout.c", pathlib.Path(folder) / "layout"
            source.write_text(layout_program())
            subprocess.run([COMPILER, "-std=c11", "-I", python_fixture.HEADERS, source, "-o",
                            program], check=True)
            printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual(printed.splitlines(), mirrored_layout())

    def test_no_struct_of_the_header_is_left_out(self):
        declared = re.findall(r"^typedef struct (\w+) \{", HEADER.read_text(), re.MULTILINE)
        self.assertEqual(declared, [name for name in STRUCTS])

    def test_no_field_of_the_header_is_left_out(self):
        text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
        for name, kind in STRUCTS.items():
            body = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (name, name), text, re.DOTALL)
            declared = re.findall(r"(?:\(\*)?(\w+)(?:\[\w+\]|\)\([^;]*\))?;", body.group(1))
            self.assertEqual(declared, [field for field, *_ in kind._fields_], name)

    def test_numbers_are_those_of_the_header(self):
        text = HEADER.read_text()
        numbers = {name: int(value) for name, value in
                   re.findall(r"(?:#define )?ATTNJIT_(\w+)(?: =)? (\d+)", text)}
        self.assertEqual(numbers["ABI_VERSION"], _structs.ABI_VERSION)
        self.assertEqual(numbers["MAX_RANK"], _structs.MAX_RANK)
        for name, code in tensors.DTYPES.items():
            self.assertEqual(numbers[name.upper()], code)
        statuses = re.search(r"enum \{\s*ATTNJIT_OK = 0,(.*?)\};", text, re.DOTALL).group(1)
        for name, status in re.findall(r"ATTNJIT_(\w+) = (\d+)", statuses):
            self.assertEqual(errors.error_of(int(status), name, []).status, int(status))
            self.assertIsNot(type(errors.error_of(int(status), name, [])), errors.AttnjitError)


unittest.main()
