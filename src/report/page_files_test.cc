#include "report/page_files.h"

#include <gtest/gtest.h>

namespace plumbline::report {
namespace {

TEST(PageFiles, AreOnePageWithoutAddressesOfOthers) {
  if (!IsPageBuilt()) GTEST_SKIP() << kPageNotBuilt;
  const PageFiles files = GetPageFiles();
  const std::string_view html = files.html, css = files.css;
  EXPECT_NE(html.find("src=\"./page.js\""), std::string_view::npos);
  EXPECT_NE(html.find("href=\"./page.css\""), std::string_view::npos);
  EXPECT_EQ(html.find("://"), std::string_view::npos);
  EXPECT_EQ(css.find("url("), std::string_view::npos);
  EXPECT_EQ(css.find("@import"), std::string_view::npos);
}

TEST(PageFiles, CanStandInsideAPage) {
  if (!IsPageBuilt()) GTEST_SKIP() << kPageNotBuilt;
  const PageFiles files = GetPageFiles();
  const std::string_view js = files.js, css = files.css;
  EXPECT_EQ(js.find("</script"), std::string_view::npos);
  EXPECT_EQ(js.find("<!--"), std::string_view::npos);
  EXPECT_EQ(css.find("</style"), std::string_view::npos);
  EXPECT_GT(js.size(), 10000U);
  EXPECT_EQ(js.find('\0'), std::string_view::npos);
}

}  // namespace
}  // namespace plumbline::report
