// The syntaxes of answers: which marks families of models write around thoughts and calls. A new one is a row.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qsf/answers/marks.h"

namespace qsf::answers {

enum class Use : std::uint8_t {
  thought,  // the marks are around a thought
  frame,    // they are around text or calls, and mean nothing
  call,     // they are around calls, whose form is seen from their beginning: see body_scan.h. Without a closing mark
            // that form ends them
  inside,   // they are parts of a call
  header,   // they are around a header, which states who speaks to whom, and in which channel
  section,  // each of them ends the section after a header
};

struct Syntax {
  std::string_view open, close;
  Use use;
  /// A text that a template with this syntax has; empty: the opening mark, or either mark of a thought or inside a
  /// call.
  std::string_view sign = {};
};

inline constexpr std::array<Syntax, kMarks / 2> kSyntaxes{{
    {"<think>", "</think>", Use::thought},                                       // DeepSeek, Qwen, GLM, SmolLM3 ...
    {"<seed:think>", "</seed:think>", Use::thought},                             // Seed-OSS
    {"<thought>", "</thought>", Use::thought},                                   // EXAONE Deep
    {"[THINK]", "[/THINK]", Use::thought},                                       // Magistral
    {"<|START_THINKING|>", "<|END_THINKING|>", Use::thought},                    // Command A
    {"<|thought_start|>", "<|thought_end|>", Use::thought},                      // MiniCPM3
    {"<|channel>", "<channel|>", Use::thought},                                  // Gemma 4
    {"Here is my thought process:", "Here is my response:", Use::thought},       // Granite 3.2
    {"<response>", "</response>", Use::frame},                                   // Granite 3.3
    {"<|START_RESPONSE|>", "<|END_RESPONSE|>", Use::frame},                      // Command A
    {"<|python_start|>", "<|python_end|>", Use::frame},                          // Llama 4
    {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", Use::frame},  // Kimi K2
    {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", Use::frame},              // DeepSeek
    {"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", Use::call},                 // DeepSeek
    {"<|tool_call_begin|>", "<|tool_call_end|>", Use::call},                     // Kimi K2
    {"<|tool_call_start|>", "<|tool_call_end|>", Use::call},                     // LFM2, MiniCPM3
    {"<tool_call>", "</tool_call>", Use::call},                                  // Hermes, Qwen, Granite 4, GLM ...
    {"<seed:tool_call>", "</seed:tool_call>", Use::call},                        // Seed-OSS
    {"<function=", "</function>", Use::call},                                    // Qwen3-Coder, Llama 3.1
    {"<tool_calls>", "</tool_calls>", Use::call},                                // Jamba
    {"<|START_ACTION|>", "<|END_ACTION|>", Use::call},                           // Command A
    {"Action:", "", Use::call, "Action:\\n```json"},                             // Command R
    {"```tool_code", "```", Use::call, "tool_code"},                             // Gemma 3
    {"<start_function_call>", "<end_function_call>", Use::call},                 // FunctionGemma
    {"<|tool_call>", "<tool_call|>", Use::call},                                 // Gemma 4
    {"<|tool_call|>", "", Use::call},                                            // Granite 3
    {"[TOOL_CALLS]", "", Use::call},                                             // Mistral
    {"<|python_tag|>", "", Use::call},                                           // Llama 3
    {"[ARGS]", "[CALL_ID]", Use::inside},                                        // Mistral
    {"<｜tool▁sep｜>", "", Use::inside},                                         // DeepSeek
    {"<|tool_call_argument_begin|>", "", Use::inside},                           // Kimi K2
    {"<arg_key>", "</arg_key>", Use::inside},                                    // GLM
    {"<arg_value>", "</arg_value>", Use::inside},                                // GLM
    {"<|\"|>", "<escape>", Use::inside},                                         // around texts: Gemma 4, FunctionGemma
    {"<|start|>", "<|message|>", Use::header, "<|channel|>"},                    // gpt-oss
    {"<|channel|>", "<|constrain|>", Use::header},                               // gpt-oss
    {"<|end|>", "<|call|>", Use::section, "<|channel|>"},                        // gpt-oss
}};

/// Returns the number of a mark of the table.
consteval std::size_t mark_of(std::string_view text) {
  for (std::size_t i = 0; i < kSyntaxes.size(); ++i) {
    if (kSyntaxes[i].open == text) return 2 * i;
    if (kSyntaxes[i].close == text) return 2 * i + 1;
  }
  return kMarks;
}

}  // namespace qsf::answers
