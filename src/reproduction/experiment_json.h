// What the experiments found, as JSON and back: a study's jobs are files, and the report is made
// from them. Numbers come back exactly. The readers throw Error naming `where` for anything missing
// or of another type.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "evaluation/behaviour.h"
#include "evaluation/free_generation.h"
#include "evaluation/pollution.h"
#include "evaluation/random_search.h"
#include "evaluation/sweep.h"

namespace sol {

Json sweep_to_json(const Sweep& sweep);
Sweep sweep_from_json(const Json& json, const std::string& where);

// Fixed's perplexity at what each heuristic realised, by its name, point by point of the sweep.
using BesideHeuristics = std::map<std::string, std::vector<double>>;
Json beside_heuristics_to_json(const BesideHeuristics& fixed);
BesideHeuristics beside_heuristics_from_json(const Json& json, const std::string& where);

Json search_to_json(const std::vector<SearchPoint>& points);
std::vector<SearchPoint> search_from_json(const Json& json, const std::string& where);

Json pollution_to_json(const Pollution& pollution);
Pollution pollution_from_json(const Json& json, const std::string& where);

Json behaviour_to_json(const Behaviour& behaviour);
Behaviour behaviour_from_json(const Json& json, const std::string& where);

Json free_generation_to_json(const FreeGeneration& found);
FreeGeneration free_generation_from_json(const Json& json, const std::string& where);

}  // namespace sol
