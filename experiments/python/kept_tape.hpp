// Tapes whose memory is reused between calls: fresh pages take as long as the arithmetic.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/autodiff/tape.hpp"

namespace hardgrad::python {

/// A cleared tape for the lifetime of this object. Afterwards the destroying thread keeps it for reuse, unless it is large.
template <class T>
class KeptTape {
 public:
  KeptTape() {
    if (idle().empty()) {
      tape_ = std::make_unique<Tape<T>>();
    } else {
      tape_ = std::move(idle().back());
      idle().pop_back();
    }
  }
  KeptTape(const KeptTape&) = delete;
  ~KeptTape() {
    tape_->clear();
    if (idle().size() < most && tape_->arena().capacity() <= largest) idle().push_back(std::move(tape_));
  }

  Tape<T>& operator*() const { return *tape_; }
  Tape<T>* operator->() const { return tape_.get(); }

 private:
  static constexpr std::size_t most = 4, largest = std::size_t{256} << 20;  // bytes
  static std::vector<std::unique_ptr<Tape<T>>>& idle() {
    thread_local std::vector<std::unique_ptr<Tape<T>>> tapes;
    return tapes;
  }
  std::unique_ptr<Tape<T>> tape_;
};

}  // namespace hardgrad::python
