// A file whose links or arrays lead into other files is refused, and these are not opened.
#include <doctest/doctest.h>
#include <hdf5.h>

#include <functional>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/hdf5/file.hpp"
#include "folder.hpp"

namespace hardgrad::testing::elsewhere_test {
using namespace storage;

TEST_CASE("links and arrays that lead into other files are refused") {
  Folder folder;
  spill(folder / "secret", "secret!!");
  const auto secret = folder / "secret";
  const hsize_t one = 1;
  const auto external_values = [&](hid_t group) {
    const hdf5::Id create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), space(H5Screate_simple(1, &one, nullptr), H5Sclose);
    H5Pset_external(create, secret.c_str(), 0, 8);
    const hdf5::Id set(H5Dcreate2(group, "a", H5T_IEEE_F64LE, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose);
    CHECK(set >= 0);
  };
  const std::vector<std::function<void(hid_t)>> ways = {
      [&](hid_t group) { H5Lcreate_external(secret.c_str(), "/x", group, "a", H5P_DEFAULT, H5P_DEFAULT); },
      [&](hid_t group) { H5Lcreate_soft("/nowhere", group, "a", H5P_DEFAULT, H5P_DEFAULT); }, external_values};
  std::size_t refused = 0;
  for (const auto& way : ways) {
    std::string bytes;
    {
      hdf5::File file;
      way(file.open_group(""));
      bytes = std::move(file).image();
    }
    spill(folder / "f.h5", bytes);
    const OpenFile open(folder / "f.h5");
    hdf5::File file(hdf5::File::Reading{open.descriptor(), open.size(), folder / "f.h5"});
    for (const bool values : {true, false}) {
      const auto said = message<InputError>([&] { file.read(file.open_group(""), values); });
      CHECK(said.find("another file") != std::string::npos);
      ++refused;
    }
  }
  CHECK(refused == 6);
}

}  // namespace hardgrad::testing::elsewhere_test
