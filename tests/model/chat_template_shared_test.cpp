// Real chat templates, which may not be shipped. Expected prompts are the formats that the models'
// makers document.
#include "model/chat_template.h"
#include "support.h"
#include "throws.h"

namespace sol::test {
namespace {

ChatTemplate real(const char* name) {
  return ChatTemplate::load(shared_dir() / "data/tokenizers" / name);
}

ChatTemplateOptions without_prompt() {
  ChatTemplateOptions options;
  options.add_generation_prompt = false;
  return options;
}

const std::vector<ChatMessage> talk{
    {"system", "Be brief. "}, {"user", "Hi"}, {"assistant", "Hello!"}, {"user", " Bye\n"}};

TEST(ChatTemplateShared, Llama3) {
  SOL_SKIP_WITHOUT_SHARED();
  const ChatTemplate chat = real("llama3_1");
  const std::string turns =
      "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
      "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
      "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>"
      "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>";
  EXPECT_EQ(chat.apply(talk), turns + "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(chat.apply(talk, without_prompt()), turns);
}

TEST(ChatTemplateShared, Qwen3) {
  SOL_SKIP_WITHOUT_SHARED();
  const ChatTemplate chat = real("qwen3");
  const std::string turns =
      "<|im_start|>system\nBe brief. <|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
      "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\n Bye\n<|im_end|>\n";
  EXPECT_EQ(chat.apply(talk), turns + "<|im_start|>assistant\n");
  ChatTemplateOptions options;
  options.variables = {{"enable_thinking", false}};
  EXPECT_EQ(chat.apply(talk, options), turns + "<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

// Thoughts before the last question go, those after it stay.
TEST(ChatTemplateShared, Qwen3ForgetsEarlierThoughts) {
  SOL_SKIP_WITHOUT_SHARED();
  const std::vector<ChatMessage> thought{{"user", "a"},
                                         {"assistant", "<think>\nhm\n</think>\n\nb"},
                                         {"user", "c"},
                                         {"assistant", "<think>\nso\n</think>\n\nd"}};
  EXPECT_EQ(real("qwen3").apply(thought, without_prompt()),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
            "<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n<think>\nso\n</think>\n\nd"
            "<|im_end|>\n");
}

TEST(ChatTemplateShared, Qwen3CallsTools) {
  SOL_SKIP_WITHOUT_SHARED();
  const Json messages = {
      {{"role", "user"}, {"content", "2+2?"}},
      {{"role", "assistant"},
       {"content", ""},
       {"tool_calls", {{{"function", {{"name", "add"}, {"arguments", {{"a", 2}, {"b", 2}}}}}}}}},
      {{"role", "tool"}, {"content", "4"}}};
  ChatTemplateOptions options;
  options.variables = {{"tools", {{{"name", "add"}}}}};
  const std::string prompt = real("qwen3").apply(messages, options);
  EXPECT_NE(prompt.find("<tools>\n{\"name\": \"add\"}\n</tools>"), std::string::npos) << prompt;
  EXPECT_NE(prompt.find("<|im_start|>assistant\n<tool_call>\n{\"name\": "
                        "\"add\", \"arguments\": {\"a\": 2, \"b\": 2}}\n</tool_call><|im_end|>\n"
                        "<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n"
                        "<|im_start|>assistant\n"),
            std::string::npos)
      << prompt;
}

TEST(ChatTemplateShared, ABaseModelHasNone) {
  SOL_SKIP_WITHOUT_SHARED();
  EXPECT_FALSE(ChatTemplate::find(shared_dir() / "data/tokenizers/mistral_v0.1").has_value());
  EXPECT_THAT([] { real("mistral_v0.1"); }, throws({"mistral_v0.1", "no chat template"}));
}

}  // namespace
}  // namespace sol::test
