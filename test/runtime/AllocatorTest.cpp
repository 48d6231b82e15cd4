//===- AllocatorTest.cpp - memory from the application's allocator ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include <unistd.h>

namespace {

struct Counts {
  int64_t blocks = 0, calls = 0, refuseFrom = INT64_MAX;
  std::map<void *, std::pair<size_t, size_t>> held;
  std::function<void()> onCall;
};

void *allocate(size_t bytes, size_t alignment, void *data) {
  auto *counts = static_cast<Counts *>(data);
  if (counts->onCall)
    counts->onCall();
  if (counts->calls++ >= counts->refuseFrom)
    return nullptr;
  ++counts->blocks;
  EXPECT_GT(bytes, 0u);
  void *memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void *)), bytes))
    return nullptr;
  counts->held[memory] = {bytes, alignment};
  return memory;
}

void release(void *memory, size_t bytes, size_t alignment, void *data) {
  auto *counts = static_cast<Counts *>(data);
  --counts->blocks;
  EXPECT_EQ(counts->held[memory], std::pair(bytes, alignment));
  counts->held.erase(memory);
  std::free(memory);
}

struct AllocatorTest : testing::Test {
  Counts counts;
  attn_allocator allocator = {sizeof allocator, allocate, release, &counts};
  ~AllocatorTest() override {
    EXPECT_EQ(attn_set_allocator(nullptr), ATTN_OK) << attn_last_error();
    EXPECT_EQ(counts.blocks, 0);
  }
};

TEST_F(AllocatorTest, IsUsedForEverything) {
  ASSERT_EQ(attn_set_allocator(&allocator), ATTN_OK) << attn_last_error();
  Library library = linkedLibrary();
  Function forward = createFunction(library.get(), "forward");
  Weights weights = createWeights(forward.get());
  Pool pool = createPool(2);
  ForwardArguments arguments;
  int64_t before = counts.blocks;
  ASSERT_EQ(arguments.call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
  arguments.expectResult();
  EXPECT_EQ(counts.blocks, before + 1); // the workspace, which the function keeps for the next call
  // The library, the function and the pool have one block each. Weights have six: the handle, its content, two lists of
  // the packed tensors, the memory of the only packed tensor, and its description.
  EXPECT_EQ(before, 9);
}

/// Returns `message` with every number replaced by #.
std::string withoutNumbers(const std::string &message) {
  return std::regex_replace(message, std::regex("[0-9]+"), "#");
}

// If any allocation fails, no memory leaks and nothing is written.
TEST_F(AllocatorTest, MayRefuse) {
  ASSERT_EQ(attn_set_allocator(&allocator), ATTN_OK) << attn_last_error();
  std::vector<std::string> messages;
  for (counts.refuseFrom = 0;; ++counts.refuseFrom) {
    counts.calls = 0;
    attn_library *library = nullptr;
    attn_function *function = nullptr;
    attn_weights *weights = nullptr;
    ForwardArguments arguments;
    attn_status status = attn_library_from_query(attn_query_kernel, &library);
    if (!status)
      status = attn_function_create(library, "forward", nullptr, &function);
    if (!status)
      status = attn_weights_create_embedded(function, &weights);
    if (!status)
      status = arguments.call(function, weights);
    if (status) {
      EXPECT_EQ(status, ATTN_ERROR_RESOURCE) << attn_last_error();
      messages.push_back(withoutNumbers(attn_last_error()));
      arguments.expectUntouched();
    }
    attn_weights_release(weights);
    attn_function_release(function);
    attn_library_release(library);
    ASSERT_EQ(counts.blocks, 0) << counts.refuseFrom;
    if (!status)
      break;
  }
  EXPECT_EQ(messages, (std::vector<std::string>{
                          "linked library: expected # bytes of memory, got none",
                          "forward: expected # bytes of memory, got none",
                          "forward: expected memory for # tensors, got none",
                          "forward: expected memory for # tensors, got none",
                          "forward: expected memory for # tensors, got none",
                          "forward: expected memory for # tensors, got none",
                          "forward: expected memory for # pointers, got none",
                          "forward: expected memory for # pointers, got none",
                          "forward: expected # bytes of memory, got none",
                          "forward: expected # bytes of memory, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory, got none",
                          "forward: expected # bytes of workspace, got none",
                      }));
}

TEST_F(AllocatorTest, MayRefuseAFileOfWeights) {
  std::string path = testing::TempDir() + "attn-" + std::to_string(getpid()) + "-weights-refused";
  ASSERT_EQ(attn_set_allocator(&allocator), ATTN_OK) << attn_last_error();
  Library library = linkedLibrary();
  Function forward = createFunction(library.get(), "forward");
  // The header length is not a multiple of 8, so the data are not aligned in the file.
  std::string header = R"({"scale":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                       R"("bias":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})";
  header.append(8 - header.size() % 8 + 3, ' ');
  std::ofstream(path, std::ios::binary)
      << char(header.size()) << std::string(7, '\0') << header << std::string(32, '\0');
  std::vector<std::string> messages;
  int64_t before = counts.blocks;
  attn_weights *weights = nullptr;
  for (counts.refuseFrom = 0; !weights; ++counts.refuseFrom) {
    counts.calls = 0;
    if (attn_weights_load(forward.get(), path.c_str(), &weights)) {
      messages.push_back(withoutNumbers(attn_last_error()));
      ASSERT_EQ(counts.blocks, before);
    }
  }
  attn_weights_release(weights);
  std::filesystem::remove(path);
  std::string file = withoutNumbers("'" + path + "': ");
  EXPECT_EQ(messages, (std::vector<std::string>{
                          file + "expected # bytes of memory, got none",
                          file + "expected memory for # names, got none",
                          file + "expected memory for # names, got none",
                          file + "expected memory for # names, got none",
                          "forward: expected memory for # pointers, got none",
                          "forward: expected memory for # pointers, got none",
                          "forward: expected # bytes of memory, got none",
                          "forward: expected # bytes of memory, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory for weights, got none",
                          "forward: expected # bytes of memory, got none",
                      }));
}

// Another process may truncate the file while the runtime reads it.
TEST_F(AllocatorTest, FileIsCutOffMeanwhile) {
  std::string path = testing::TempDir() + "attn-" + std::to_string(getpid()) + "-cut";
  ASSERT_EQ(attn_set_allocator(&allocator), ATTN_OK) << attn_last_error();
  Library library = linkedLibrary();
  Function forward = createFunction(library.get(), "forward");
  std::ofstream(path, std::ios::binary)
      << '\x02' << std::string(7, '\0') << "{}" << std::string(8192, '\0');
  counts.onCall = [&] { std::filesystem::resize_file(path, 100); };
  attn_weights *weights = nullptr;
  EXPECT_EQ(attn_weights_load(forward.get(), path.c_str(), &weights), ATTN_ERROR_FILE);
  EXPECT_EQ(attn_last_error(), "'" + path + "': expected 8202 bytes, got 100: it was cut off");
  std::filesystem::remove(path);
}

TEST_F(AllocatorTest, MayRefuseAPool) {
  counts.refuseFrom = 0;
  ASSERT_EQ(attn_set_allocator(&allocator), ATTN_OK) << attn_last_error();
  attn_pool *pool = nullptr;
  EXPECT_EQ(attn_pool_create(2, &pool), ATTN_ERROR_RESOURCE);
  EXPECT_STREQ(attn_last_error(), "attn_pool_create: expected memory, got none");
}

TEST_F(AllocatorTest, IsRefusedOnceMemoryIsHeld) {
  Library library = linkedLibrary();
  EXPECT_EQ(attn_set_allocator(&allocator), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_set_allocator: expected 0 blocks of memory in use by objects of attn, got 1");
}

TEST_F(AllocatorTest, NeedsBothFunctions) {
  allocator.release = nullptr;
  EXPECT_EQ(attn_set_allocator(&allocator), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_set_allocator: expected both allocate and release, got one");
}

} // namespace
