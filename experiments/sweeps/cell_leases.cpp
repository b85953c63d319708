#include "experiments/sweeps/cell_leases.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::sweeps {
namespace {

const std::string ending = ".claim";

std::string own_text() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return nlohmann::json{
      {"process", storage::this_process()}, {"pid", ::getpid()}, {"host", host}, {"claim", storage::random_name()}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct Lease {
  std::string text;
  bool standing = false;
};

// The lease at a path, if there is one. `now`: the file system's time.
std::optional<Lease> lease_at(const std::string& path, double lifetime, std::time_t now) {
  struct stat status {};
  const auto text = storage::read_if_there(path);  // empty: being written, on a file system without hard links
  if (!text || ::stat(path.c_str(), &status) != 0) return {};
  const auto said = nlohmann::json::parse(*text, nullptr, false);
  const auto process = said.is_object() && said.contains("process") && said["process"].is_string()
                           ? said["process"].get<std::string>()
                           : std::string();
  const auto life = storage::life_of(process);
  const bool fresh = static_cast<double>(now - status.st_mtime) <= lifetime;
  return Lease{*text, life == storage::Life::alive || (life == storage::Life::elsewhere && fresh)};
}

// Removes a void lease. If another process has replaced it in the meantime, its lease is restored.
void remove_lease(const std::filesystem::path& path, const std::string& text) {
  const auto aside = path.parent_path() / fmt::format(".{}.{}.{}.partial", path.filename().string(), storage::this_process(),
                                                      storage::random_name());
  if (::rename(path.c_str(), aside.c_str()) != 0) return;
  if (storage::read_if_there(aside) != text) (void)!::link(aside.c_str(), path.c_str());
  ::unlink(aside.c_str());
}

std::string holder(const std::string& text) {
  const auto said = nlohmann::json::parse(text, nullptr, false);
  const auto has = [&](const char* key, bool number) {
    return said.is_object() && said.contains(key) && (number ? said[key].is_number_integer() : said[key].is_string());
  };
  if (!has("pid", true) || !has("host", false)) return "another process";
  return fmt::format("process {} on {}", said["pid"].get<long long>(), said["host"].get<std::string>());
}

}  // namespace

CellLeases::CellLeases(std::string folder, double lifetime) : folder_(std::move(folder)), lifetime_(lifetime) {
  heart_ = std::jthread([this](std::stop_token stop) {
    std::mutex sleep;
    std::condition_variable_any wake;
    std::unique_lock lock(sleep);
    while (!wake.wait_for(lock, stop, std::chrono::duration<double>(lifetime_ / 20), [&] { return stop.stop_requested(); }))
      touch_all();
  });
}

CellLeases::~CellLeases() {
  heart_ = {};
  give_all_back();
}

bool CellLeases::take(const std::string& name) {
  const auto file = path(name), text = own_text();
  for (int attempt = 0; attempt < 10; ++attempt) {
    // Written with its text in one step: after a crash, an empty lease would remain valid for a lifetime. Its name needs no
    // fsync: a lease that a crash removes was of a process that the crash ended, and was void.
    if (path_kind<UsageError>(file) == PathKind::missing && storage::write_new_file(file, text, false)) {
      std::lock_guard guard(mutex_);
      ours_[name] = text;
      return true;
    }
    const auto other = lease_at(file, lifetime_, storage::folder_time(folder_));
    if (other && other->standing) return false;
    if (other) remove_lease(file, other->text);
  }
  return false;
}

void CellLeases::give_back(const std::string& name) {
  std::string text;
  {
    std::lock_guard guard(mutex_);
    const auto it = ours_.find(name);
    if (it == ours_.end()) return;
    text = it->second;
    ours_.erase(it);
  }
  try {
    if (storage::read_if_there(path(name)) == text)
      ::unlink(path(name).c_str());  // it is another's if ours was considered void
  } catch (const InputError&) {      // the current file is not ours
  }
}

void CellLeases::give_all_back() {
  std::map<std::string, std::string> all;
  {
    std::lock_guard guard(mutex_);
    all = ours_;
  }
  for (const auto& [name, text] : all) give_back(name);
}

void CellLeases::touch_all() {
  std::lock_guard guard(mutex_);
  for (const auto& [name, text] : ours_) ::utimensat(AT_FDCWD, path(name).c_str(), nullptr, 0);
}

namespace {

// f(path, lease) for each lease in a folder.
template <class F>
void for_each_lease(const std::string& folder, double lifetime, F f) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ending && !entry->path().filename().string().starts_with('.'))
      files.push_back(entry->path());
  if (files.empty()) return;
  const auto now = storage::folder_time(folder);
  for (const auto& file : files)
    if (const auto lease = lease_at(file.string(), lifetime, now)) f(file, *lease);
}

}  // namespace

std::map<std::string, std::string> valid_leases(const std::string& folder, double lifetime) {
  std::map<std::string, std::string> found;
  for_each_lease(folder, lifetime, [&](const auto& file, const Lease& lease) {
    if (lease.standing) found[file.stem().string()] = holder(lease.text);
  });
  return found;
}

std::size_t remove_void_leases(const std::string& folder, double lifetime) {
  std::size_t removed = 0;
  for_each_lease(folder, lifetime, [&](const auto& file, const Lease& lease) {
    if (lease.standing) return;
    remove_lease(file, lease.text);
    ++removed;
  });
  return removed;
}

}  // namespace hardgrad::sweeps
