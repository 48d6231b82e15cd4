//===- LibraryTest.cpp - loading, errors, lifetime ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <fstream>
#include <regex>
#include <set>
#include <vector>

#include "attn_kernel.h"

#include <sys/stat.h>
#include <unistd.h>

namespace {

void expectLoadRefused(const std::string &path, const std::string &message) {
  attn_library *library = nullptr;
  EXPECT_EQ(attn_library_load(path.c_str(), &library), ATTN_ERROR_LIBRARY);
  EXPECT_EQ(std::string(attn_last_error()).substr(0, message.size()), message);
  EXPECT_EQ(library, nullptr);
}

void expectQueryRefused(attn_query_fn query, const std::string &message) {
  attn_library *library = nullptr;
  EXPECT_EQ(attn_library_from_query(query, &library), ATTN_ERROR_LIBRARY);
  EXPECT_EQ(attn_last_error(), message);
  EXPECT_EQ(library, nullptr);
}

Library load(const char *path) {
  attn_library *library = nullptr;
  EXPECT_EQ(attn_library_load(path, &library), ATTN_OK) << attn_last_error();
  return Library(library);
}

TEST(LibraryTest, Describe) {
  Library library = load(KERNEL_LIBRARY);
  EXPECT_STREQ(attn_library_name(library.get()), "kernel");
  EXPECT_STREQ(attn_library_compiler(library.get()), "by hand");
  EXPECT_STREQ(attn_library_manifest(library.get()), "{}");
  ASSERT_EQ(attn_library_num_functions(library.get()), 12);
  EXPECT_STREQ(attn_library_function_name(library.get(), 1), "halve");
  EXPECT_EQ(attn_library_function_name(library.get(), 12), nullptr);
  EXPECT_EQ(attn_library_function_name(library.get(), -1), nullptr);
}

TEST(LibraryTest, ReleasedInAnyOrder) {
  Library library = load(KERNEL_LIBRARY);
  Function forward = createFunction(library.get(), "forward");
  library.reset();
  Weights weights = createWeights(forward.get());
  ForwardArguments arguments;
  ASSERT_EQ(arguments.call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
  arguments.expectResult();
  forward.reset();
  weights.reset();
}

TEST(LibraryTest, NameWithoutSlashIsAFile) {
  std::string path = KERNEL_LIBRARY;
  size_t slash = path.rfind('/');
  ASSERT_EQ(chdir(path.substr(0, slash).c_str()), 0);
  load(path.substr(slash + 1).c_str());
}

// A file that replaces the file of a loaded library is another library. The same file is the same library.
TEST(LibraryTest, ReplacedFile) {
  std::ifstream file(KERNEL_LIBRARY, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::string path = testing::TempDir() + "attn-" + std::to_string(getpid()) + "-replaced.so";
  std::vector<Library> libraries;
  std::set<const char *> names; // the names have different addresses in different libraries
  for (size_t i = 1; i <= 5; ++i) {
    std::ofstream(path + ".new", std::ios::binary)
        .write(bytes.data(), std::streamsize(bytes.size()));
    ASSERT_EQ(rename((path + ".new").c_str(), path.c_str()), 0);
    for (int again = 0; again < 3; ++again) {
      libraries.push_back(load(path.c_str()));
      names.insert(attn_library_name(libraries.back().get()));
      EXPECT_EQ(names.size(), i);
    }
  }
  unlink(path.c_str());
}

TEST(LibraryTest, MissingFile) {
  expectLoadRefused("/nowhere/layer.so",
                    "library '/nowhere/layer.so': expected a shared library, got: ");
}

TEST(LibraryTest, PathTooLong) {
  expectLoadRefused("/" + std::string(5000, 'x'),
                    "attn_library_load: expected a path of less than 4096 bytes, got 5001");
}

TEST(LibraryTest, NotALibrary) {
  expectLoadRefused(__FILE__, "library '" __FILE__ "': expected a shared library, got: ");
}

// A library that is truncated anywhere is refused, unless it still has all bytes that are loaded.
TEST(LibraryTest, Truncated) {
  std::ifstream file(KERNEL_LIBRARY, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::string path = testing::TempDir() + "attn-" + std::to_string(getpid()) + "-truncated.so";
  bool whole = false;
  int64_t refused = 0;
  for (size_t size = 0; size < bytes.size(); size += 97) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(size));
    attn_library *library = nullptr;
    if (attn_library_load(path.c_str(), &library) == ATTN_OK) {
      whole = true;
      attn_library_release(library);
      continue;
    }
    EXPECT_FALSE(whole) << size;
    std::string message = attn_last_error();
    EXPECT_EQ(message.find("library '" + path + "': expected a "), 0u) << message;
    std::regex cutOff("expected a whole library of at least [0-9]+ bytes, got [0-9]+");
    refused += std::regex_search(message, cutOff);
  }
  EXPECT_GT(refused, 0);
  unlink(path.c_str());
}

TEST(LibraryTest, Pipe) {
  std::string path = testing::TempDir() + "attn-" + std::to_string(getpid()) + "-pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expectLoadRefused(path, "library '" + path + "': expected a shared library, got no regular file");
  unlink(path.c_str());
}

TEST(LibraryTest, NotOurs) {
  expectLoadRefused(OTHER_LIBRARY,
                    "library '" OTHER_LIBRARY "': expected the symbol attn_query, got none");
}

TEST(LibraryTest, OtherAbiVersion) {
  expectLoadRefused(NEXT_ABI_LIBRARY,
                    "library '" NEXT_ABI_LIBRARY "': expected ABI version 8, got 9");
}

TEST(LibraryTest, NullDescription) {
  expectQueryRefused([]() -> const attn_library_info * { return nullptr; },
                     "linked library: expected a description, got null");
}

TEST(LibraryTest, ShortDescription) {
  static const attn_library_info info = {ATTN_ABI_VERSION, 16, "", "", "", 0, 0, nullptr};
  expectQueryRefused([] { return &info; },
                     "linked library: expected a description of 48 bytes, got 16");
}

TEST(LibraryTest, NullArguments) {
  attn_library *library = nullptr;
  EXPECT_EQ(attn_library_load(nullptr, &library), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_library_load: expected a path and a place for the library, got null");
  EXPECT_EQ(attn_library_load(KERNEL_LIBRARY, nullptr), ATTN_ERROR_USAGE);
  EXPECT_EQ(attn_library_from_query(nullptr, &library), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(), "attn_library_from_query: expected a query function and a place "
                                  "for the library, got null");
  attn_library_release(nullptr);
  attn_function_release(nullptr);
  attn_weights_release(nullptr);
  attn_pool_release(nullptr);
}

TEST(LibraryTest, Version) { EXPECT_STREQ(attn_version(), ATTN_VERSION); }

} // namespace
