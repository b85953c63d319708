// Tables of inflected forms or of pronunciations, in the formats of SIGMORPHON's shared tasks.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::tasks {

struct InflectedForm {
  std::string lemma, form;
  std::vector<std::string> features;
};
/// Lines `lemma TAB form TAB feature;feature` (SIGMORPHON 2017 and later). InputError on a line with another number of columns
/// or an empty one.
std::vector<InflectedForm> read_inflections(const std::string& path);

struct Transcription {
  std::string word;
  std::vector<std::string> sounds;
};
/// Lines `word TAB s o u n d s` with blanks between the sounds (SIGMORPHON 2020, task 1). InputError likewise.
std::vector<Transcription> read_transcriptions(const std::string& path);

}  // namespace hardgrad::tasks
