// Numbers as text: spelled exactly as Python spells them, and counts of things in sentences.

#ifndef PLUMBLINE_BASE_TEXT_NUMBER_TEXT_H_
#define PLUMBLINE_BASE_TEXT_NUMBER_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace plumbline {

// Appends repr(value) of Python's float: shortest digits that read back to the same double, fixed
// notation for exponents -4 to 15 ("3.0", "0.0001"), otherwise scientific with sign and at least
// two exponent digits ("1e-05", "1e+16"). Not-finite values as "nan", "inf", "-inf".
void AppendPythonFloat(double value, std::string& out);
std::string PythonFloat(double value);

// The same with json.dumps' tokens for not-finite values: "NaN", "Infinity", "-Infinity".
void AppendJsonFloat(double value, std::string& out);

// As "{:.3f}" and "{:.6f}" of fmt: rounded from the exact value, ties to even, "-0.000000" for what
// rounds to zero from below. `decimals` is at most 9.
void AppendFixed(double value, int decimals, std::string& out);

// As "%.{digits}g" of C: rounded from the exact value, ties to even, without zeros at the end; not
// finite values as of AppendPythonFloat(). `digits` is 1 to 17.
void AppendGeneral(double value, int digits, std::string& out);

// "1 call", "2 calls"; `plural` where an "s" is not enough ("2 searches").
std::string CountText(uint64_t count, std::string_view noun, std::string_view plural = {});

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_TEXT_NUMBER_TEXT_H_
