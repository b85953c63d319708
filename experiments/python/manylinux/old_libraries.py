"""Stubs of old system libraries, to link against: old_libraries.py FOLDER POLICY, e.g. manylinux_2_28: a name that
auditwheel knows, of a glibc before 2.34.

A linker takes the newest version of every symbol, and the result needs a system that has it. The stubs have the symbols of the
installed libraries, without their code, in the newest version that the policy allows, under the libraries' names of then. Symbols that the
old libraries lack are linked statically, from old_functions.c and the installed libstdc++.a, and stay hidden: program, module and plugins
share the system's libstdc++.
"""
import json
import re
import subprocess
import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

from elftools.elf.elffile import ELFFile

INSTALLED = ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libgcc_s.so.1", "libstdc++.so.6")
#: What glibc 2.34 moved to libc.so.6, by the library that had it before.
MOVED = {"libpthread.so.0": r"_*pthread_|sem_", "libdl.so.2": r"dl", "librt.so.1": r"aio_|lio_|mq_|shm_|timer_"}
CODE, DATA, THREAD_DATA = ".text", ".bss", '.section .tbss,"awT",@nobits'
SECTIONS = {"STT_FUNC": CODE, "STT_LOOS": CODE, "STT_OBJECT": DATA, "STT_TLS": THREAD_DATA}  # STT_LOOS: chosen at start, by processor
TYPES = {CODE: "function", DATA: "object", THREAD_DATA: "tls_object"}


def exported(path):
    """{name: [(version, symbol), ...]} of the library."""
    found = defaultdict(list)
    with open(path, "rb") as file:
        elf = ELFFile(file)
        definitions = elf.get_section_by_name(".gnu.version_d").iter_versions()
        versions = {definition["vd_ndx"]: next(names).name for definition, names in definitions}
        indices = (entry["ndx"] for entry in elf.get_section_by_name(".gnu.version").iter_symbols())
        for symbol, index in zip(elf.get_section_by_name(".dynsym").iter_symbols(), indices):
            if symbol["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS") and symbol["st_info"]["type"] in SECTIONS and isinstance(index, int):
                found[symbol.name].append((versions[index & 0x7fff], symbol))  # the highest bit: not the default
    return found


def allowed(policy):
    """The versions that it allows, as {name: numbers to compare}."""
    policies = json.loads((files("auditwheel") / "policy" / "manylinux-policy.json").read_text())
    (versions,) = [one["symbol_versions"]["x86_64"] for one in policies if one["name"] == policy]
    return {f"{family}_{number}": [int(part) for part in re.findall(r"\d+", number)] for family, numbers in versions.items() for number in numbers}


def stubs(policy):
    """{library: {name: (version, symbol)}}"""
    order = allowed(policy)
    libraries = defaultdict(dict)
    for library in INSTALLED:
        for name, versions in exported(where(library)).items():
            old = [one for one in versions if one[0] in order]
            if not old:
                continue
            place = library
            if library == "libc.so.6" and len(old) < len(versions):
                place = next((former for former, names in MOVED.items() if re.match(names, name)), library)
            libraries[place][name] = max(old, key=lambda one: order[one[0]])
    return libraries


def write_stub(folder, library, symbols):
    """A shared library with these symbols. Names of one place in memory stay names of one place."""
    lines, by_version, by_place = [], defaultdict(list), defaultdict(list)
    for name, (version, symbol) in symbols.items():
        by_version[version].append(name)
        by_place[SECTIONS[symbol["st_info"]["type"]], symbol["st_value"]].append((name, symbol["st_size"]))
    for (section, _), named in sorted(by_place.items()):
        lines += [section, ".balign 32"]
        for name, size in named:
            lines += [f".globl {name}", f".type {name}, @{TYPES[section]}", f".size {name}, {size}", f"{name}:"]
        lines += [f".zero {1 if section == CODE else max(size for _, size in named) or 1}"]
    assembly, script = folder / f"{library}.s", folder / f"{library}.map"
    assembly.write_text("\n".join(lines) + "\n")
    script.write_text("".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in sorted(by_version.items())))
    call("gcc", "-shared", "-nostdlib", f"-Wl,-soname,{library},--version-script,{script}", "-o", folder / library, assembly)


def call(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def where(file):
    return call("g++", f"-print-file-name={file}")


def main(folder, policy):
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for library, symbols in stubs(policy).items():
        write_stub(folder, library, symbols)
    call("gcc", "-O2", "-fPIC", "-c", "-o", folder / "old_functions.o", Path(__file__).with_name("old_functions.c"))
    call("ar", "rcs", folder / "libold.a", folder / "old_functions.o")
    groups = {
        "libc": [folder / "libold.a", folder / "libc.so.6", where("libc_nonshared.a"), "AS_NEEDED (", folder / "ld-linux-x86-64.so.2",
                 *(folder / former for former in MOVED), ")"],
        "libm": [folder / "libm.so.6"],
        "libgcc_s": [folder / "libgcc_s.so.1", "-lgcc"],
        "libstdc++": [folder / "libstdc++.so.6", where("libstdc++.a")],
    }
    for name, parts in groups.items():
        (folder / f"{name}.so").write_text(f"GROUP ( {' '.join(map(str, parts))} )\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
