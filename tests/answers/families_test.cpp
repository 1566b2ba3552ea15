// The answers of families of models, in the formats that they publish.
#include <gtest/gtest.h>

#include "answers/read.h"

namespace qsf::answers::test {
namespace {

struct Family {
  const char* name;
  std::string_view chat_template;  // as much of it as selects the syntax
  std::string_view prompt;         // its end
  std::string_view answer;
  std::vector<Said> said;
};

const std::string_view kWeather = R"({"city":"Zürich","days":2})";

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {"Hermes",
       "<tool_call>",
       "<|im_start|>assistant\n",
       "I look it up.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\", \"days\": 2}}\n"
       "</tool_call>\n<tool_call>\n{\"arguments\": {}, \"name\": \"now\"}\n</tool_call>",
       {text("I look it up."), call("get_weather", kWeather), call("now", "{}")}},
      {"Qwen3",
       "<think></think><tool_call>",
       "<|im_start|>assistant\n",
       "<think>\nThe user asks\nfor <b>weather</b>.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", "
       "\"arguments\": {\"city\": \"Zürich\", \"days\": 2}}\n</tool_call>",
       {thought("The user asks\nfor <b>weather</b>."), call("get_weather", kWeather)}},
      {"Qwen3Thinking",
       "</think>",
       "<|im_start|>assistant\n<think>\n",
       "Hm.\n</think>\n\nIt is sunny. \n",
       {thought("Hm."), text("It is sunny. \n")}},
      {"Qwen3WithoutThinking",
       "<think></think>",
       "<|im_start|>assistant\n<think>\n\n</think>\n\n",
       "It is sunny.",
       {text("It is sunny.")}},
      {"Qwen3Coder",
       "<tool_call><function=",
       "",
       "Let me see.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nZürich\n</parameter>\n<parameter=days>\n"
       "2\n</parameter>\n</function>\n</tool_call>",
       {text("Let me see."), call("get_weather", kWeather)}},
      {"Qwen3CoderWithoutAFrame",
       "<tool_call><function=",
       "",
       "<function=get_weather>\n<parameter=city>\nZürich\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>",
       {call("get_weather", kWeather)}},
      {"Llama3",
       "{\"name\": function name, \"parameters\": dictionary of argument name and its value}",
       "<|start_header_id|>assistant<|end_header_id|>\n\n",
       R"({"name": "get_weather", "parameters": {"city": "Zürich", "days": 2}})",
       {call("get_weather", kWeather)}},
      {"Llama3Several",
       "",
       "",
       R"({"name": "get_weather", "parameters": {"city": "Zürich", "days": 2}}; {"name": "now", "parameters": {}})",
       {call("get_weather", kWeather), call("now", "{}")}},
      {"Llama3PythonTag",
       "<|python_tag|>",
       "",
       R"(<|python_tag|>{"type": "function", "name": "get_weather", "parameters": {"city": "Zürich", "days": 2}})",
       {call("get_weather", kWeather)}},
      {"Llama3BuiltIn",
       "<|python_tag|>",
       "",
       R"(<|python_tag|>brave_search.call(query="weather in Zürich"))",
       {call("brave_search", R"({"query":"weather in Zürich"})")}},
      {"Llama31Custom",
       "<function=",
       "",
       R"(<function=get_weather>{"city": "Zürich", "days": 2}</function>)",
       {call("get_weather", kWeather)}},
      {"Llama4",
       "<|python_start|><|python_end|>",
       "",
       R"(<|python_start|>[get_weather(city="Zürich", days=2), now()]<|python_end|>)",
       {call("get_weather", kWeather), call("now", "{}")}},
      {"Llama4Json",
       "<|python_start|><|python_end|>",
       "",
       R"(<|python_start|><|python_end|>{"name": "get_weather", "parameters": {"city": "Zürich", "days": 2}})",
       {call("get_weather", kWeather)}},
      {"Mistral",
       "[TOOL_CALLS]",
       "[/INST]",
       "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\", \"days\": 2}, \"id\": "
       "\"call00001\"}, {\"name\": \"now\", \"arguments\": {}}]",
       {call("get_weather", kWeather), call("now", "{}")}},
      {"MistralWithArgs",
       "[TOOL_CALLS][ARGS]",
       "[/INST]",
       "I look.[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Zürich\", \"days\": 2}[TOOL_CALLS]now[ARGS]{}",
       {text("I look."), call("get_weather", kWeather), call("now", "{}")}},
      {"MistralWithIds",
       "[TOOL_CALLS][CALL_ID][ARGS]",
       "[/INST]",
       "[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{\"city\": \"Zürich\", \"days\": 2}",
       {call("get_weather", kWeather)}},
      {"Magistral",
       "[THINK][/THINK][TOOL_CALLS][ARGS]",
       "[/INST]",
       "[THINK]Hm, hm.[/THINK]It is sunny.",
       {thought("Hm, hm."), text("It is sunny.")}},
      {"GptOss",
       "<|start|><|channel|><|message|>",
       "<|end|><|start|>assistant",
       "<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary<|message|>I look it "
       "up.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
       "{\"city\": \"Zürich\", \"days\": 2}<|call|>",
       {thought("Need weather."), text("I look it up."), call("get_weather", kWeather)}},
      {"GptOssRecipientFirst",
       "<|start|><|channel|><|message|>",
       "<|start|>assistant",
       " to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
       {call("now", "{}")}},
      {"GptOssFinal",
       "<|start|><|channel|><|message|>",
       "<|start|>assistant",
       "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>analysis<|message|>Two.<|end|><|start|>"
       "assistant<|channel|>final<|message|>Sunny.\n\n{\"name\": 1}",
       {thought("One.\n\nTwo."), text("Sunny.\n\n{\"name\": 1}")}},
      {"Gemma3",
       "```tool_code",
       "<start_of_turn>model\n",
       "Okay.\n```tool_code\nprint(get_weather(city=\"Zürich\", days=2))\n```\n",
       {text("Okay."), call("get_weather", kWeather)}},
      {"Gemma3Json",
       "",
       "",
       "```json\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Zürich\", \"days\": 2}}\n```",
       {call("get_weather", kWeather)}},
      {"FunctionGemma",
       "<start_function_call><escape>",
       "",
       "<start_function_call>call:get_weather{city:<escape>Zürich<escape>,days:2}<end_function_call>",
       {call("get_weather", kWeather)}},
      {"Gemma4",
       "<|channel><|tool_call><|\"|>",
       "<|turn>model\n",
       "<|channel>thought\nThey "
       "ask.\n<channel|><|tool_call>call:get_weather{city:<|\"|>Zürich<|\"|>,days:2}<tool_call|>"
       "<|tool_call>call:set{list:[<|\"|>a \"b\" {<|\"|>,true],object:{x:{y:1.5}}}<tool_call|>",
       {thought("They ask."), call("get_weather", kWeather),
        call("set", R"({"list":["a \"b\" {",true],"object":{"x":{"y":1.5}}})")}},
      {"Gemma4ThoughtInThePrompt",
       "<|channel>",
       "<tool_response|><|channel>thought\n",
       "They ask.\n<channel|>Sunny.",
       {thought("They ask."), text("Sunny.")}},
      {"Granite3",
       "<|tool_call|>",
       "<|end_of_role|>",
       R"(<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}])",
       {call("get_weather", kWeather)}},
      {"Granite32Thoughts",
       "Write your thoughts after 'Here is my thought process:' and 'Here is my response:'",
       "",
       "Here is my thought process:\nThey ask.\n\nHere is my response:\n\nSunny.",
       {thought("They ask."), text("Sunny.")}},
      {"Granite33Thoughts",
       "<think></think><response></response>",
       "",
       "<think>They ask.</think>\n<response>Sunny. </response>",
       {thought("They ask."), text("Sunny.")}},
      {"DeepSeek3",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁sep｜>",
       "<｜Assistant｜>",
       "One moment.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
       "{\"city\": \"Zürich\", \"days\": 2}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n"
       "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       {text("One moment."), call("get_weather", kWeather), call("now", "{}")}},
      {"DeepSeek31",
       "<think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁sep｜>",
       "<｜Assistant｜><think>",
       "They ask.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Zürich\", "
       "\"days\": 2}<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       {thought("They ask."), call("get_weather", kWeather), call("now", "{}")}},
      {"Lfm2",
       "<|tool_call_start|>",
       "<|im_start|>assistant\n",
       "<|tool_call_start|>[get_weather(city=\"Zürich\", days=2), now()]<|tool_call_end|>Checking.",
       {call("get_weather", kWeather), call("now", "{}"), text("Checking.")}},
      {"MiniCpm3",
       "<|thought_start|><|tool_call_start|>",
       "",
       "<|thought_start|>\nThey ask.\n<|thought_end|>\n<|tool_call_start|>\n```python\nget_weather(city=\"Zürich\","
       "days=2)\nnow()\n```\n<|tool_call_end|>\n",
       {thought("They ask."), call("get_weather", kWeather), call("now", "{}")}},
      {"Glm45",
       "<think><tool_call><arg_key><arg_value>",
       "<|assistant|>",
       "\n<think>They ask.</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Zürich</arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
       {thought("They ask."), call("get_weather", kWeather)}},
      {"Glm5",
       "<think><tool_call><arg_key><arg_value>",
       "<|assistant|><think>",
       "They ask.</think>Yes.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Zürich</arg_value><arg_key>days"
       "</arg_key><arg_value>2</arg_value></tool_call><tool_call>now</tool_call>",
       {thought("They ask."), text("Yes."), call("get_weather", kWeather), call("now", "{}")}},
      {"KimiK2",
       "<think><|tool_calls_section_begin|><|tool_call_begin|><|tool_call_argument_begin|>",
       "",
       "<think>They ask.</think><|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
       "<|tool_call_argument_begin|>{\"city\": \"Zürich\", \"days\": 2}<|tool_call_end|><|tool_calls_section_end|>",
       {thought("They ask."), call("get_weather", kWeather)}},
      {"CommandA",
       "<|START_THINKING|><|START_ACTION|><|START_RESPONSE|>",
       "<|CHATBOT_TOKEN|>",
       "<|START_THINKING|>They ask.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": "
       "\"get_weather\", \"parameters\": {\"city\": \"Zürich\", \"days\": 2}}\n]<|END_ACTION|>",
       {thought("They ask."), call("get_weather", kWeather)}},
      {"CommandAResponse",
       "<|START_THINKING|><|START_ACTION|><|START_RESPONSE|>",
       "<|CHATBOT_TOKEN|>",
       "<|START_RESPONSE|>It is sunny.<|END_RESPONSE|>",
       {text("It is sunny.")}},
      {"CommandR",
       "'\\nAction:\\n```json\\n[\\n'",
       "<|CHATBOT_TOKEN|>",
       "Action:\n```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\": "
       "\"Zürich\", \"days\": 2}\n    }\n]```\n",
       {call("get_weather", kWeather)}},
      {"Jamba",
       "<tool_calls>",
       "<|assistant|>",
       " <tool_calls>[\n    {\"name\": \"get_weather\", \"arguments\": \"{\\\"city\\\": \\\"Zürich\\\", \\\"days\\\": "
       "2}\"}\n]</tool_calls>",
       {call("get_weather", kWeather)}},
      {"Hammer",
       "[\n    {\"name\": \"func_name1\", \"arguments\": ...",
       "<|im_start|>assistant\n",
       "```\n[\n    {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\", \"days\": 2}}\n]\n```",
       {call("get_weather", kWeather)}},
      {"SeedOss",
       "<seed:think><seed:tool_call><function=",
       "",
       "<seed:think>They ask.</seed:think>\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>Zürich"
       "</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
       {thought("They ask."), call("get_weather", kWeather)}},
      {"ExaoneDeep",
       "content.split('</thought>')",
       "\n[|assistant|]<thought>\n",
       "They ask.\n</thought>\n\nSunny.",
       {thought("They ask."), text("Sunny.")}},
  };
  return all;
}

class FamilyTest : public testing::TestWithParam<Family> {
 protected:
  OwnTools tools_;
};

INSTANTIATE_TEST_SUITE_P(Answers, FamilyTest, testing::ValuesIn(families()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(FamilyTest, WithMarksAsTextCutAtEveryByte) {
  const auto& [name, chat_template, prompt, answer, said] = GetParam();
  const Marks marks = marks_of(chat_template, false);
  for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
    Reading reading(marks, tools_.tools, prompt);
    reading.text(answer.substr(0, cut));
    reading.text(answer.substr(cut));
    ASSERT_EQ(reading.end(), said) << cut;
  }
  Reading reading(marks, tools_.tools, prompt);
  for (const char c : answer) reading.text({&c, 1});
  EXPECT_EQ(reading.end(), said);
}

TEST_P(FamilyTest, WithMarksAsTokensCutAtEveryByte) {
  const auto& [name, chat_template, prompt, answer, said] = GetParam();
  const Marks marks = marks_of(chat_template, true);
  for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
    Reading reading(marks, tools_.tools, prompt);
    reading.with_tokens(answer, cut);
    ASSERT_EQ(reading.end(), said) << cut;
  }
}

}  // namespace
}  // namespace qsf::answers::test
