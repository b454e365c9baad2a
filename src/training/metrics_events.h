// A collection's metrics under TensorBoard's tags.
#pragma once

#include <vector>

#include "training/event_file.h"
#include "training/metrics.h"

namespace sol {

// Every number of the metrics but `collection`, which is the step; docs/formats.md lists the tags.
std::vector<EventScalar> metric_scalars(const CollectionMetrics& metrics);
// Per axis, how often each level was chosen.
std::vector<EventHistogram> metric_histograms(const CollectionMetrics& metrics);

}  // namespace sol
