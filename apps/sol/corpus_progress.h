// What `sol prepare` and `sol train` show while a corpus is tokenised.
#pragma once

#include <string>

#include "base/stopwatch.h"
#include "common.h"
#include "text/prepare_corpus.h"

namespace sol::app {

class CorpusProgress {
 public:
  // They refer to this object.
  PrepareCallbacks callbacks();
  // Ends the line; says how much was tokenised and how fast, if anything was, and what was skipped.
  void finish(const PreparedManifest& made);
  void stop() { line_.finish(); }  // ends the line only
  bool worked() const { return last_.tokens > 0; }

 private:
  PrepareProgress last_;
  ProgressLine line_;
};

}  // namespace sol::app
