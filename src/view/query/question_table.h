// The functions behind answers.h, one for each question of docs/design/viewer.md.

#ifndef PLUMBLINE_VIEW_QUERY_QUESTION_TABLE_H_
#define PLUMBLINE_VIEW_QUERY_QUESTION_TABLE_H_

#include <string>

#include "plumbline/result.h"
#include "view/query/node_rows.h"

namespace plumbline::view {

// Of the tree (tree_answers.cc).
Result<std::string> AnswerMeta(const Question& question);
Result<std::string> AnswerChildren(const Question& question);
Result<std::string> AnswerPath(const Question& question);
Result<std::string> AnswerNode(const Question& question);
Result<std::string> AnswerFlow(const Question& question);

// Of many nodes (search_answers.cc).
Result<std::string> AnswerFind(const Question& question);
Result<std::string> AnswerFirst(const Question& question);

// Between ranks, sides, steps and results (across_answers.cc, structure_answer.cc).
Result<std::string> AnswerCommunication(const Question& question);
Result<std::string> AnswerTimeline(const Question& question);
Result<std::string> AnswerOverSteps(const Question& question);
Result<std::string> AnswerBaseline(const Question& question);
Result<std::string> AnswerStructure(const Question& question);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_QUESTION_TABLE_H_
