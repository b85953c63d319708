// Groups and their content: axes as dimension scales, variables along them.
#include <hdf5_hl.h>

#include <algorithm>
#include <new>
#include <optional>

#include "core/support/error.hpp"
#include "experiments/storage/hdf5/file.hpp"

namespace hardgrad::storage::hdf5 {
namespace {

struct Member {
  std::string name;
  haddr_t address;  ///< of its header in the file, as in references to it
};

/// A group's members of one type, in order of creation if the file tracks it; nothing if they cannot be listed.
std::optional<std::vector<Member>> members(hid_t group, H5O_type_t wanted) {
  struct Context {
    std::vector<Member> found;
    H5O_type_t wanted;
  } context{{}, wanted};
  H5_index_t order = H5_INDEX_CRT_ORDER;
  Id create(H5Gget_create_plist(group), H5Pclose);
  unsigned tracked = 0;
  if (H5Pget_link_creation_order(create, &tracked) < 0 || !(tracked & H5P_CRT_ORDER_TRACKED)) order = H5_INDEX_NAME;
  const auto visit = [](hid_t g, const char* name, const H5L_info_t* link, void* data) -> herr_t {
    auto& c = *static_cast<Context*>(data);
    if (link->type != H5L_TYPE_HARD) return -1;  // it leads elsewhere, maybe into another file
    H5O_info_t info;
    if (H5Oget_info_by_name2(g, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
    if (info.type == c.wanted) c.found.push_back({name, info.addr});
    return 0;
  };
  if (H5Literate(group, order, H5_ITER_INC, nullptr, visit, &context) < 0) return std::nullopt;
  return context.found;
}

/// The address of the first scale of each axis of a dataset; empty if they cannot be read this way.
std::vector<haddr_t> scales_at(hid_t set, std::size_t rank) {
  static_assert(sizeof(hobj_ref_t) == sizeof(haddr_t));
  if (rank == 0 || H5Aexists(set, "DIMENSION_LIST") <= 0) return {};
  const Id list(H5Aopen(set, "DIMENSION_LIST", H5P_DEFAULT), H5Aclose);
  const Id space(H5Aget_space(list), H5Sclose), type(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose);
  if (H5Sget_simple_extent_npoints(space) != static_cast<hssize_t>(rank)) return {};
  std::vector<hvl_t> lists(rank);
  if (H5Aread(list, type, lists.data()) < 0) return {};
  std::vector<haddr_t> found;
  found.reserve(rank);
  for (const auto& scales : lists) found.push_back(scales.len ? *static_cast<const hobj_ref_t*>(scales.p) : HADDR_UNDEF);
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists.data());
  return found;
}

/// Name of the scale at one axis of a dataset; empty if there is none. Slow: it opens the scale.
std::string axis_of(hid_t set, unsigned i) {
  std::string axis;
  const auto visit = [](hid_t, unsigned, hid_t scale, void* out) -> herr_t {
    char buffer[512] = {};  // the name stored with the scale: HDF5's own look-up searches the whole file
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
  const auto found = members(open_group(""), H5O_TYPE_GROUP);
  if (!found) fail("its groups cannot be listed; a link may lead to another file");
  std::vector<std::string> names;
  for (const auto& member : *found) names.push_back(member.name);
  return names;
}

Id File::open_scale(hid_t group, const Axis& axis) { return open_array(group, (axis.inherited ? "/" : "") + axis.name); }

void File::attach(hid_t group, hid_t set, const Dataset& data, const Variable& variable) {
  for (unsigned i = 0; i < variable.axes.size(); ++i) {
    const auto scale = open_scale(group, *data.axis(variable.axes[i]));
    if (H5DSattach_scale(set, scale, i) < 0) fail("axis " + variable.axes[i] + " of " + variable.name);
  }
}

void File::write(hid_t group, const Dataset& data, bool compress) {
  data.validate();
  write_attributes(group, data.attributes);
  for (const auto& axis : data.axes)
    if (!axis.inherited)
      put_values(make_array(group, axis.name, {axis.size()}, axis.labels, axis.attributes, compress, true), axis.name,
                 axis.labels);
  for (const auto& variable : data.variables) {
    const auto set =
        make_array(group, variable.name, data.shape(variable), variable.values, variable.attributes, compress, false);
    put_values(set, variable.name, variable.values);
    attach(group, set, data, variable);
  }
}

Id File::open_array(hid_t group, const std::string& name) {
  Id set(ok(H5Dopen2(group, name.c_str(), H5P_DEFAULT), name), H5Dclose);
  const Id create(ok(H5Dget_create_plist(set), name), H5Pclose);
  if (H5Pget_external_count(create) > 0 || H5Pget_layout(create) == H5D_VIRTUAL) fail(name + " has its values in another file");
  return set;
}

Dataset File::read(hid_t group, bool values) {
  Dataset data;
  data.attributes = read_attributes(group);
  const auto names = members(group, H5O_TYPE_DATASET);
  if (!names) fail("its datasets cannot be listed; a link may lead to another file");
  const auto own = [&](auto&& is) { return std::find_if(names->begin(), names->end(), is); };
  try {
    for (const auto& [name, address] : *names) {
      const auto set = open_array(group, name);
      if (H5DSis_scale(set) > 0) {
        data.axes.push_back({name, read_array(set, name), read_attributes(set)});
        continue;
      }
      Variable variable{name, {}, values ? read_array(set, name) : Values(), read_attributes(set)};
      const auto rank = shape_of(set, name).size();
      const auto scales = scales_at(set, rank);
      for (unsigned i = 0; i < rank; ++i) {
        auto scale = names->end();
        if (i < scales.size()) scale = own([&](const Member& member) { return member.address == scales[i]; });
        const auto axis = scale != names->end() ? scale->name : axis_of(set, i);
        if (axis.empty()) fail("axis " + std::to_string(i) + " of " + name + " has no labels (no dimension scale)");
        variable.axes.push_back(axis);
        if (own([&](const Member& member) { return member.name == axis; }) == names->end() && !data.axis(axis)) {
          Axis inherited{axis, {}, {}, true};
          const auto above = open_scale(group, inherited);
          inherited.labels = read_array(above, axis);
          inherited.attributes = read_attributes(above);
          data.axes.push_back(std::move(inherited));
        }
      }
      data.variables.push_back(std::move(variable));
    }
    if (values) data.validate();
  } catch (const Bug& bug) {
    fail(bug.what());
  } catch (const std::bad_alloc&) {
    fail("it declares more data than fits in memory");
  }
  return data;
}

}  // namespace hardgrad::storage::hdf5
