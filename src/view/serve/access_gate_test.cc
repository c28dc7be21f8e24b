#include "view/serve/access_gate.h"

#include <gtest/gtest.h>

#include <string>

#include "view/serve/gzip_text.h"

namespace plumbline::view {
namespace {

constexpr const char* kToken = "0123456789abcdef";

HttpRequest Asking(std::string path, std::string host = "127.0.0.1:80") {
  HttpRequest request;
  request.method = "GET";
  request.target = path;
  request.path = std::move(path);
  request.headers = {{"host", std::move(host)}, {"authorization", std::string("Bearer ") + kToken}};
  return request;
}

int StatusOf(const AccessRules& rules, const HttpRequest& request) {
  AccessGate gate(rules);
  gate.SetPort(80);
  const auto refusal = gate.Check(request);
  return refusal ? refusal->status : 200;
}

TEST(AccessGate, NeedsTheToken) {
  const AccessRules rules{.token = kToken, .host = "127.0.0.1", .frames = {}, .body_bytes = 10};
  EXPECT_EQ(StatusOf(rules, Asking("/")), 200);
  HttpRequest request = Asking("/");
  request.headers["authorization"] = "Bearer 0123456789abcdeF";
  EXPECT_EQ(StatusOf(rules, request), 401);
  request.headers.erase("authorization");
  request.headers["cookie"] = std::string("a=1; plumb_view_80=") + kToken;
  EXPECT_EQ(StatusOf(rules, request), 200);
  request.headers["cookie"] = std::string("plumb_view_81=") + kToken;
  EXPECT_EQ(StatusOf(rules, request), 401);
  request.parameters.Set("token", kToken);
  EXPECT_EQ(StatusOf(rules, request), 302);
}

TEST(AccessGate, HostsFollowTheAddressListenedAt) {
  const AccessRules local{.token = kToken, .host = "127.0.0.1", .frames = {}, .body_bytes = 10};
  const AccessRules open{.token = kToken, .host = "0.0.0.0", .frames = {}, .body_bytes = 10};
  for (const char* host : {"localhost", "LOCALHOST:1", "127.9.9.9", "[::1]:5"}) {
    EXPECT_EQ(StatusOf(local, Asking("/", host)), 200) << host;
  }
  for (const char* host : {"10.0.0.1", "[fe80::1]"}) {
    EXPECT_EQ(StatusOf(local, Asking("/", host)), 421) << host;
    EXPECT_EQ(StatusOf(open, Asking("/", host)), 200) << host;
  }
  for (const char* host :
       {"", "evil.example", "127.0.0.1.evil.example", "[::1", "[::1]x", "1.2.x"}) {
    EXPECT_EQ(StatusOf(open, Asking("/", host)), 421) << host;
  }
}

TEST(AccessGate, ChangesComeFromTheOwnPageAsJson) {
  const AccessRules rules{.token = kToken, .host = "127.0.0.1", .frames = {}, .body_bytes = 10};
  HttpRequest request = Asking("/api/open");
  request.method = "POST";
  request.headers["content-type"] = "application/json";
  request.headers["content-length"] = "10";
  EXPECT_EQ(StatusOf(rules, request), 200);
  request.headers["origin"] = "http://127.0.0.1:80";
  EXPECT_EQ(StatusOf(rules, request), 200);
  request.headers["origin"] = "http://127.0.0.1:81";
  EXPECT_EQ(StatusOf(rules, request), 403);
  request.headers.erase("origin");
  request.headers["content-length"] = "11";
  EXPECT_EQ(StatusOf(rules, request), 413);
}

TEST(AccessGate, TheAddressKeepsAllButTheToken) {
  EXPECT_EQ(WithoutToken("/g/a?token=x&q=%2B&a=token=y"), "/g/a?q=%2B&a=token=y");
  EXPECT_EQ(WithoutToken("/?token=x"), "/");
  EXPECT_EQ(WithoutToken("//evil.example/?token=x"), "/evil.example/");
  EXPECT_EQ(WithoutToken("/\\evil.example"), "/");
  EXPECT_EQ(WithoutToken("http://evil.example/"), "/");
}

TEST(AccessGate, TokensAreRandomAndPlain) {
  const Result<std::string> one = MakeToken(), other = MakeToken();
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
  EXPECT_EQ(one->size(), 32U);
  EXPECT_TRUE(CheckToken(*one));
  for (const char* bad : {"", "short12", "has blank in", "semi;colon", "new\nline12"}) {
    EXPECT_FALSE(CheckToken(bad)) << bad;
  }
}

TEST(GzipText, IsTakenWhereItIsNamed) {
  EXPECT_TRUE(TakesGzip("br, gzip;q=0.1"));
  EXPECT_TRUE(TakesGzip("*"));
  EXPECT_FALSE(TakesGzip("gzip;q=0"));
  EXPECT_FALSE(TakesGzip("gzip; q=0.00"));
  EXPECT_FALSE(TakesGzip("gzipx, br"));
  EXPECT_FALSE(GzipText("short"));
  const auto packed = GzipText(std::string(10'000, 'a'));
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->size(), 200U);
  EXPECT_EQ(packed->substr(0, 2), "\x1f\x8b");
}

}  // namespace
}  // namespace plumbline::view
