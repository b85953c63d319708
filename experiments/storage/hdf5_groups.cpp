// Groups and what they hold: axes as dimension scales, variables along them.
#include <hdf5_hl.h>

#include <algorithm>
#include <new>
#include <optional>

#include "core/support/error.hpp"
#include "experiments/storage/hdf5.hpp"

namespace hardgrad::hdf5 {
namespace {

/// Names of a group's members of one type, in order of creation if the file tracks it; nothing if they cannot
/// be listed.
std::optional<std::vector<std::string>> members(hid_t group, H5O_type_t wanted) {
  struct Context {
    std::vector<std::string> names;
    H5O_type_t wanted;
  } context{{}, wanted};
  H5_index_t order = H5_INDEX_CRT_ORDER;
  Id create(H5Gget_create_plist(group), H5Pclose);
  unsigned tracked = 0;
  if (H5Pget_link_creation_order(create, &tracked) < 0 || !(tracked & H5P_CRT_ORDER_TRACKED)) order = H5_INDEX_NAME;
  const auto visit = [](hid_t g, const char* name, const H5L_info_t*, void* data) -> herr_t {
    auto& c = *static_cast<Context*>(data);
    H5O_info_t info;
    if (H5Oget_info_by_name2(g, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
    if (info.type == c.wanted) c.names.emplace_back(name);
    return 0;
  };
  if (H5Literate(group, order, H5_ITER_INC, nullptr, visit, &context) < 0) return std::nullopt;
  return context.names;
}

/// Name of the scale at one axis of a dataset; empty if there is none.
std::string axis_of(hid_t set, unsigned i) {
  std::string axis;
  const auto visit = [](hid_t, unsigned, hid_t scale, void* out) -> herr_t {
    char buffer[512] = {};  // its own note of its name: to ask HDF5 for it is to search the whole file
    if (H5DSget_scale_name(scale, buffer, sizeof buffer) <= 0) H5Iget_name(scale, buffer, sizeof buffer);
    const std::string path = buffer;
    *static_cast<std::string*>(out) = path.substr(path.rfind('/') + 1);
    return 1;
  };
  H5DSiterate_scales(set, i, nullptr, visit, &axis);
  return axis;
}

}  // namespace

Id File::make_group(const std::string& name) {
  Id create(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return Id(ok(H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, create, H5P_DEFAULT), "group " + name), H5Gclose);
}

Id File::open_group(const std::string& name) {
  return Id(ok(H5Gopen2(file_, name.empty() ? "/" : name.c_str(), H5P_DEFAULT), "no group /" + name), H5Gclose);
}

std::vector<std::string> File::groups() {
  auto names = members(open_group(""), H5O_TYPE_GROUP);
  if (!names) fail("its groups cannot be listed");
  return std::move(*names);
}

Id File::open_scale(hid_t group, const Axis& axis) {
  const auto place = (axis.inherited ? "/" : "") + axis.name;
  return Id(ok(H5Dopen2(group, place.c_str(), H5P_DEFAULT), place), H5Dclose);
}

void File::write(hid_t group, const Dataset& data, bool compress) {
  data.validate();
  write_attributes(group, data.attributes);
  for (const auto& axis : data.axes)
    if (!axis.inherited) write_array(group, axis.name, {axis.size()}, axis.labels, axis.attributes, compress, true);
  for (const auto& variable : data.variables) {
    write_array(group, variable.name, data.shape(variable), variable.values, variable.attributes, compress, false);
    const Id set(H5Dopen2(group, variable.name.c_str(), H5P_DEFAULT), H5Dclose);
    for (unsigned i = 0; i < variable.axes.size(); ++i) {
      const auto scale = open_scale(group, *data.axis(variable.axes[i]));
      if (H5DSattach_scale(set, scale, i) < 0) fail("axis " + variable.axes[i] + " of " + variable.name);
    }
  }
}

Dataset File::read(hid_t group) {
  Dataset data;
  data.attributes = read_attributes(group);
  const auto names = members(group, H5O_TYPE_DATASET);
  if (!names) fail("its datasets cannot be listed");
  try {
    for (const auto& name : *names) {
      const Id set(ok(H5Dopen2(group, name.c_str(), H5P_DEFAULT), name), H5Dclose);
      std::vector<hsize_t> shape;
      auto values = read_array(set, name, shape);
      auto attributes = read_attributes(set);
      if (H5DSis_scale(set) > 0) {
        data.axes.push_back({name, std::move(values), std::move(attributes)});
        continue;
      }
      Variable variable{name, {}, std::move(values), std::move(attributes)};
      for (unsigned i = 0; i < shape.size(); ++i) {
        const auto axis = axis_of(set, i);
        if (axis.empty()) fail("axis " + std::to_string(i) + " of " + name + " has no labels (no dimension scale)");
        variable.axes.push_back(axis);
        const bool own = std::find(names->begin(), names->end(), axis) != names->end();
        if (!own && !data.axis(axis)) {
          Axis inherited{axis, {}, {}, true};
          const auto scale = open_scale(group, inherited);
          std::vector<hsize_t> length;
          inherited.labels = read_array(scale, axis, length);
          inherited.attributes = read_attributes(scale);
          data.axes.push_back(std::move(inherited));
        }
      }
      data.variables.push_back(std::move(variable));
    }
    data.validate();
  } catch (const Bug& bug) {
    fail(bug.what());
  } catch (const std::bad_alloc&) {
    fail("it claims more data than this machine can hold");
  }
  return data;
}

}  // namespace hardgrad::hdf5
