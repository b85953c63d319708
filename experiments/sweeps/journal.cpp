#include "experiments/sweeps/journal.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::sweeps {

Journal::Journal(const std::string& path) : path_(path) {
  refuse_strange<UsageError>(path);
  file_ = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) throw UsageError(fmt::format("{}: cannot be written: {}", path, system_words(errno)));
  const auto size = ::lseek(file_, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file_, &last, 1, size - 1) == 1 && last != '\n' && ::write(file_, "\n", 1) != 1)
    throw UsageError(fmt::format("{}: cannot be written: {}", path, system_words(errno)));
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

void Journal::append(nlohmann::json event) {
  event["time"] = storage::timestamp();
  const auto line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // One write, so that lines of several processes stay intact. After a partial write, writing the rest reports the error.
  for (std::size_t done = 0; done < line.size();) {
    const auto put = ::write(file_, line.data() + done, line.size() - done);
    if (put < 0) throw UsageError(fmt::format("{}: cannot be written: {}", path_, system_words(errno)));
    done += static_cast<std::size_t>(put);
  }
}

void Journal::each(const std::string& path, const std::function<void(const nlohmann::json&)>& f) {
  if (path_kind(path) == PathKind::missing) return;
  storage::each_line(path, [&](std::string_view line) {
    if (const auto event = nlohmann::json::parse(line, nullptr, false); event.is_object()) f(event);
  });
}

std::vector<nlohmann::json> Journal::read(const std::string& path) {
  std::vector<nlohmann::json> events;
  each(path, [&](const nlohmann::json& event) { events.push_back(event); });
  return events;
}

}  // namespace hardgrad::sweeps
