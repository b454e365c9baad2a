#include "serving/running_request.h"

#include "serving/api_error.h"

namespace sol {
namespace {

std::string event(const std::string& data) {
  return "data: " + data + "\n\n";
}

}  // namespace

RunningRequest::RunningRequest(CompletionRequest request, const ServedModel& served,
                               Scheduler& scheduler, std::atomic<int>& count)
    : request_(std::move(request)),
      outbox_(std::make_shared<Outbox>(request_.jobs.size(), request_.stream)),
      response_(request_, served),
      count_(count) {
  for (size_t i = 0; i < request_.jobs.size(); ++i)
    jobs_.push_back(std::make_shared<Job>(request_.jobs[i], served, outbox_, i));
  scheduler.submit(jobs_, request_.choices_per_prompt > 1 ? "n" : "prompt");
  ++count_;
}

RunningRequest::~RunningRequest() {
  for (const auto& job : jobs_) job->cancel();
  --count_;
}

std::vector<std::string> RunningRequest::wait(std::chrono::milliseconds patience) {
  std::vector<std::string> events;
  for (Outbox::Delivery& delivery : outbox_->take(patience))
    for (std::string& made : response_.take(std::move(delivery))) events.push_back(std::move(made));
  return events;
}

std::string EventStream::next(std::chrono::milliseconds patience) {
  std::string text;
  try {
    for (const std::string& data : running_->wait(patience)) text += event(data);
    if (running_->response().complete()) {
      if (const auto last = running_->response().last_event()) text += event(*last);
      text += event("[DONE]");
      ended_ = true;
    }
  } catch (const ApiError& error) {
    text += event(to_text(error.to_json()));
    ended_ = true;
  } catch (const std::exception& error) {
    text += event(to_text(server_error(error).to_json()));
    ended_ = true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (text.empty() && now - last_sent_ > silence_) text = ": still here\n\n";
  if (!text.empty()) last_sent_ = now;
  return text;
}

}  // namespace sol
