#include "operators/convert_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/acl/acl_dump.h"

namespace plumbline::operators {
namespace {

std::string shrinking;  // cut off when the first output is opened

int CutAndOpen(int directory, const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && std::string_view(path).find(".output.") != std::string_view::npos) {
    EXPECT_EQ(::truncate(shrinking.c_str(), 4096), 0);
  }
  return ::openat(directory, path, flags, mode);
}

// In a process of somebody else, as that of the Python package.
TEST(ConvertFile, ADumpThatIsCutOffMeanwhileBecomesNoFile) {
  const testing::TestDirectory dir;
  const std::string data(1 << 20, 'x');
  acl::Message message;
  message.version = "2.0";
  acl::DumpedTensor& output = message.outputs.emplace_back();
  output.data_type = 1;
  output.format = DeviceFormat::kND;
  output.shape = acl::Dims{data.size() / 4};
  output.data = std::as_bytes(std::span(data));
  output.size = data.size();
  const std::string name = "Add.a.1.2.3";
  shrinking = dir.Path(name);
  ASSERT_TRUE(WriteFileAtomically(shrinking, acl::MakeHeader(message) + data, false));
  DumpResult<OutputDirectory> directory = OutputDirectory::Open(dir.Path("out"));
  ASSERT_TRUE(directory);
  ConvertOptions options;
  options.kind = OutputKind::kTxt;
  const SyscallTable real = Syscalls();
  Syscalls().openat = CutAndOpen;
  const FileConversion conversion = ConvertFile(shrinking, name, options, *directory);
  Syscalls() = real;
  EXPECT_TRUE(conversion.outputs.empty());
  ASSERT_EQ(conversion.failures.size(), 1U);
  EXPECT_EQ(conversion.failures[0].part, "output:0");
  EXPECT_NE(conversion.failures[0].failure.text.find("became shorter"), std::string::npos)
      << conversion.failures[0].failure.text;
  EXPECT_TRUE(ListDirectory(dir.Path("out"))->empty());
}

}  // namespace
}  // namespace plumbline::operators
