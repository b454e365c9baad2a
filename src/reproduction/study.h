// A study: which controllers are trained for a model, and how they are looked at; one YAML file
// (docs/formats.md, "Study").
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "evaluation/budget_grid.h"
#include "evaluation/pollution.h"
#include "text/text_reader.h"

namespace sol {

// Some text that the study reads.
struct StudyText {
  std::string name;   // "train", or the key it is given under: part of file names
  std::string label;  // in tables; the name where none is given
  std::vector<std::filesystem::path> files;
  TextOptions::Format format = TextOptions::Format::documents;
};

// Overrides of a training configuration, as of `sol train --set`.
using Overrides = std::vector<std::pair<std::string, std::string>>;

struct StudyController {
  std::string name;                     // "2l": sections refer to it
  std::filesystem::path configuration;  // to train it by; empty when it is ready
  std::filesystem::path ready;          // a controller that exists already
  Overrides overrides;                  // the study's, then its own
  int updates = 0;                      // 0: the configuration's
  double minutes = 0;                   // > 0: training ends then, whatever is left
};

// Controllers whose levels hurt alike: the paper's levels, or harsher ones for a model that those
// scarcely hurt.
struct StudyFamily {
  std::string name;   // in files
  std::string title;  // in the report
  std::vector<StudyController> controllers;

  const StudyController* find(const std::string& controller) const;
};

// Whether a family has that controller and it is trained here, so that other seeds can be.
bool trained_again(const StudyFamily& family, const std::string& controller);
// A controller trained again with another seed.
std::string reseeded(const std::string& controller, uint64_t seed);

// The paper's experiments; each names the controllers of a family it is about. A family that lacks
// one is left out there.
struct StudyExperiments {
  struct Spaces {
    std::vector<std::string> controllers{"2l", "3l", "fl"};
    std::vector<std::string> baselines{"fixed", "emc", "dac"};
  } spaces;
  struct Landscape {
    int schedules = 30;
    int points = 12;  // of the validation frontier, evenly spread
  } landscape;
  struct Search {
    int schedules = 500;
    int points = 4;
  } search;
  struct Single {
    std::vector<std::string> controllers;
    int schedules = 30;
    int points = 3;   // budgets, evenly spread between the levels
    int budgets = 0;  // > 0: a sweep against fixed budgets besides, over so many at least
  } single;
  struct Horizons {
    std::vector<std::string> controllers{"t4", "t16", "t64"};
  } horizons;
  PollutionOptions pollution;
  // Static methods, one knob each (paper: Quest, TEAL, ZeroQuant at their usual settings).
  struct Static {
    std::vector<float> kappa{0.5f, 0.3f}, rho{0.8f, 0.6f};
    std::vector<int> bits{8, 5};
  } static_methods;
  struct Timed {
    std::string controller = "2l";
    int blocks = 16;
    int points = 8;  // of the validation frontier
  } timed;
  struct Behaving {
    std::string controller = "2l";
    int points = 4;
  } behaviour;
  struct Free {
    std::string controller = "2l";
    int prompts = 64, prompt_tokens = 128, tokens = 64;
    int points = 4;
  } free;
  struct Transfer {
    std::string controller = "2l";
    std::vector<StudyText> texts;
    std::vector<int> contexts;
    int blocks = 64;
  } transfer;
  struct Seeds {
    std::string controller = "2l";
    std::vector<uint64_t> seeds;  // beside the study's
  } seeds;
};

struct Study {
  std::string name;
  std::filesystem::path model;  // empty: the embedded one
  StudyText train{"train", "training", {}}, valid{"valid", "validation", {}},
      test{"test", "test", {}};
  uint64_t seed = 1234;
  int context = 1024;
  int blocks = 112;            // of the test text; 0: all
  int validation_blocks = 48;  // of the validation text, for frontiers
  int budgets = 200;           // in a sweep: at least so many, or the paper's
  GridRequest::Kind grid = GridRequest::Kind::automatic;
  std::optional<int> sweep_blocks;  // in place of `blocks`, of the sweeps of test text
  int blocks_of_sweeps() const { return sweep_blocks.value_or(blocks); }
  std::vector<StudyFamily> families;
  StudyExperiments experiments;
  bool quick = false;

  // Everything that decides the results but the model and the program: a directory holds one study.
  // Files are told by their names and content: configurations and ready controllers by all of it,
  // texts by their size, beginning and end. Throws Error for one that cannot be read.
  Json to_json() const;
};

// Controllers of action spaces and of horizons, each once.
std::vector<std::string> spaces_and_horizons(const Study& study);
// Those whose policies are swept over budgets: these, and of single axes where the study asks for
// it.
std::vector<std::string> swept_controllers(const Study& study);
// How many budgets such a sweep has at least.
int budgets_of_sweep(const Study& study, const std::string& controller);

// Reads CONFIG; paths in it are relative to its folder. Throws Error naming file, line and key for
// anything unknown, missing, of another type or out of range, a controller that no family has, or
// two of one name.
Study load_study(const std::filesystem::path& config);

// Everything in small, to see within minutes that a study runs: its figures mean nothing.
void make_quick(Study& study);

}  // namespace sol
