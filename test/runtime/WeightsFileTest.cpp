//===- WeightsFileTest.cpp - safetensors, packed and hostile files --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace {

struct WeightsFileTest : ForwardTest {
  std::string path = testing::TempDir() + "attn-weights-" + std::to_string(getpid()) +
                     testing::UnitTest::GetInstance()->current_test_info()->name();
  attn_weights *loaded = nullptr;

  ~WeightsFileTest() override {
    attn_weights_release(loaded);
    std::filesystem::remove(path);
  }

  void write(const std::string &bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  }
  std::string read() {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Returns a safetensors file with this header, and with the weights of createWeights as its data.
  static std::string safetensors(const std::string &header) {
    float data[] = {1, 2, 3, 4, 5, 6, 7, 8};
    std::string bytes;
    for (int i = 0; i < 8; ++i)
      bytes += char(uint64_t(header.size()) >> 8 * i);
    return bytes + header + std::string(reinterpret_cast<char *>(data), sizeof data);
  }

  attn_status load() { return attn_weights_load(forward.get(), path.c_str(), &loaded); }
  attn_status map() { return attn_weights_map(forward.get(), path.c_str(), &loaded); }

  void expectResultWith(attn_weights *weights) {
    ASSERT_EQ(call(forward.get(), weights), ATTN_OK) << attn_last_error();
    expectResult();
  }

  /// Checks that the file is refused with its name and this message.
  void expectLoadRefused(const std::string &bytes, attn_status status, const std::string &message) {
    SCOPED_TRACE(message);
    write(bytes);
    EXPECT_EQ(load(), status);
    EXPECT_EQ(attn_last_error(), "'" + path + "': " + message);
    EXPECT_EQ(loaded, nullptr);
  }
};

const char kScale[] = R"("scale":{"dtype":"F32","shape":[4],"data_offsets":[0,16]})";
const char kBias[] = R"("bias":{"dtype":"F32","shape":[4],"data_offsets":[16,32]})";

TEST_F(WeightsFileTest, Loads) {
  write(safetensors(std::string("{") + kScale + "," + kBias + "}  "));
  ASSERT_EQ(load(), ATTN_OK) << attn_last_error();
  expectResultWith(loaded);
}

TEST_F(WeightsFileTest, AnyOrderMetadataSpaceAndEscapes) {
  write(safetensors(R"( { "__metadata__" : { "format" : "pt", "note":"\u00e9\ud83d\ude00\n" } ,
    "bias":{"data_offsets":[16 , 32],"shape":[4],"dtype":"F32"},
    "\u0073c\u0061le" : {"dtype":"F32","shape":[4],"data_offsets":[0,16]} } )"));
  ASSERT_EQ(load(), ATTN_OK) << attn_last_error();
  expectResultWith(loaded);
}

TEST_F(WeightsFileTest, NamesAndShapesAreChecked) {
  write(safetensors(std::string("{") + kScale + "}"));
  EXPECT_EQ(load(), ATTN_ERROR_COUNT);
  EXPECT_STREQ(attn_last_error(), "forward: weight 'bias' expected a tensor, got none");
  write(safetensors(std::string("{") + kScale + "," + kScale + "," + kBias + "}"));
  EXPECT_EQ(load(), ATTN_ERROR_NAME);
  EXPECT_STREQ(attn_last_error(), "forward: weight 'scale' expected once, got twice");
  write(safetensors(std::string("{") + kScale +
                    R"(,"gain":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})"));
  EXPECT_EQ(load(), ATTN_ERROR_NAME);
  EXPECT_STREQ(attn_last_error(), "forward: expected weights of this function, got 'gain'");
  write(safetensors(std::string("{") + kScale +
                    R"(,"bias":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]}})"));
  EXPECT_EQ(load(), ATTN_ERROR_RANK);
  EXPECT_STREQ(attn_last_error(), "forward: weight 'bias' expected rank 1, got 2");
  write(safetensors(std::string("{") + kScale +
                    R"(,"bias":{"dtype":"I32","shape":[4],"data_offsets":[16,32]}})"));
  EXPECT_EQ(load(), ATTN_ERROR_DTYPE);
  EXPECT_STREQ(attn_last_error(), "forward: weight 'bias' expected float32, got int32");
  // A name may contain control sequences of a terminal.
  write(safetensors(R"({"a\u001b[1m\nb":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})"));
  EXPECT_EQ(load(), ATTN_ERROR_NAME);
  EXPECT_STREQ(attn_last_error(), "forward: expected weights of this function, got 'a?[1m?b'");
}

TEST_F(WeightsFileTest, Hostile) {
  auto scale = [](const char *dtype, const char *shape, const char *offsets) {
    return safetensors(std::string(R"({"scale":{"dtype":)") + dtype + R"(,"shape":)" + shape +
                       R"(,"data_offsets":)" + offsets + "}}");
  };
  auto file = ATTN_ERROR_FILE;
  expectLoadRefused("1234567", file,
                    "expected a safetensors file, got 7 bytes of which the header takes 0");
  expectLoadRefused(std::string(8, '\xff') + "{}", file,
                    "expected a safetensors file, got 10 bytes of which the header takes "
                    "18446744073709551615");
  expectLoadRefused(safetensors(""), file, "header expected '{', got its end");
  expectLoadRefused(safetensors("[]"), file, "header expected '{', got '['");
  expectLoadRefused(safetensors("{"), file, "header expected a string, got its end");
  expectLoadRefused(safetensors("{}}"), file, "header expected its end, got '}'");
  expectLoadRefused(safetensors(R"({"a)"), file,
                    "header expected a string without control characters, got its end");
  expectLoadRefused(safetensors(R"({"\x": 1})"), file, "header expected an escape, got 'x'");
  expectLoadRefused(safetensors(R"({"\u00g0": 1})"), file,
                    "header expected a hexadecimal digit, got 'g'");
  expectLoadRefused(safetensors(R"({"\ud800": 1})"), file,
                    "header expected a surrogate pair, got '\"'");
  expectLoadRefused(safetensors(R"({"\u0000": 1})"), file,
                    "header expected a name without zeros, got '\"'");
  expectLoadRefused(safetensors(R"({"a": 1})"), file, "header expected '{', got '1'");
  expectLoadRefused(safetensors(R"({"a": {"dtype":"F32"}})"), file,
                    "'a' expected dtype, shape and two data_offsets, got fewer");
  expectLoadRefused(safetensors(R"({"a": {"dtype":"F32","dtype":"F32"}})"), file,
                    "'a' expected dtype, shape and data_offsets, got 'dtype'");
  expectLoadRefused(scale(R"("F8_E4M3")", "[4]", "[0,4]"), ATTN_ERROR_DTYPE,
                    "'scale' expected a dtype such as F32 or I64, got 'F8_E4M3'");
  expectLoadRefused(scale(R"("F32")", "[-4]", "[0,16]"), file,
                    "header expected a whole number, got '-'");
  expectLoadRefused(scale(R"("F32")", "[4.0]", "[0,16]"), file, "header expected ']', got '.'");
  expectLoadRefused(scale(R"("F32")", "[9223372036854775808]", "[0,16]"), file,
                    "header expected a number below 2^63, got '8'");
  expectLoadRefused(scale(R"("F32")", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), file,
                    "header expected at most 16 sizes, got '1'");
  expectLoadRefused(scale(R"("F32")", "[4294967296,4294967296]", "[0,16]"), file,
                    "'scale' expected data of its shape, got bytes 0 to 16");
  expectLoadRefused(scale(R"("F32")", "[4]", "[16,0]"), file,
                    "'scale' expected data of its shape, got bytes 16 to 0");
  expectLoadRefused(scale(R"("F32")", "[4]", "[0,20]"), file,
                    "'scale' expected data of its shape, got bytes 0 to 20");
  expectLoadRefused(scale(R"("F32")", "[4]", "[24,40]"), file,
                    "'scale' expected data within 32 bytes, got bytes 24 to 40");
  expectLoadRefused(scale(R"("F32")", "[4]", "[0,16,32]"), file,
                    "header expected two data_offsets, got '3'");
}

TEST_F(WeightsFileTest, NoFile) {
  EXPECT_EQ(load(), ATTN_ERROR_FILE);
  EXPECT_EQ(attn_last_error(),
            "'" + path + "': expected a file that can be read, got: No such file or directory");
  expectLoadRefused("", ATTN_ERROR_FILE, "expected a file with content, got an empty one");
  EXPECT_EQ(attn_weights_load(forward.get(), "/dev/null", &loaded), ATTN_ERROR_FILE);
  EXPECT_STREQ(attn_last_error(), "'/dev/null': expected a file with content, got no regular file");
}

TEST_F(WeightsFileTest, Maps) {
  ASSERT_EQ(attn_weights_save(weights.get(), path.c_str()), ATTN_OK) << attn_last_error();
  ASSERT_EQ(map(), ATTN_OK) << attn_last_error();
  attn_weights_info info = {}, saved = {};
  info.size = saved.size = sizeof info;
  ASSERT_EQ(attn_weights_describe(loaded, &info), ATTN_OK);
  ASSERT_EQ(attn_weights_describe(weights.get(), &saved), ATTN_OK);
  EXPECT_EQ(info.mapped, 1);
  EXPECT_EQ(info.source_hash, saved.source_hash);
  expectResultWith(loaded);
  // Mapped and packed weights can be swapped like any others, and the file may be replaced meanwhile.
  ASSERT_EQ(attn_weights_swap(weights.get(), loaded), ATTN_OK) << attn_last_error();
  ASSERT_EQ(attn_weights_save(loaded, path.c_str()), ATTN_OK) << attn_last_error();
  expectResultWith(weights.get());
}

TEST_F(WeightsFileTest, PackedFilesAreChecked) {
  ASSERT_EQ(attn_weights_save(weights.get(), path.c_str()), ATTN_OK) << attn_last_error();
  const std::string good = read();
  auto expectMapRefused = [&](const std::string &bytes, attn_status status,
                              const std::string &message) {
    write(bytes);
    EXPECT_EQ(map(), status);
    EXPECT_EQ(attn_last_error(), message);
    EXPECT_EQ(loaded, nullptr);
  };
  std::string name = "'" + path + "': ";
  expectMapRefused("ATTNPACK", ATTN_ERROR_FILE,
                   name + "expected a file of attn_weights_save, got one shorter than its header");
  expectMapRefused(std::string(96, 'x'), ATTN_ERROR_FILE,
                   name + "expected a file of attn_weights_save, got another file");
  expectMapRefused(good.substr(0, 95), ATTN_ERROR_FILE, name + "expected 96 bytes, got 95");
  expectMapRefused(good + "x", ATTN_ERROR_FILE, name + "expected 96 bytes, got 97");
  std::string version = good;
  version[8] = 1;
  expectMapRefused(version, ATTN_ERROR_FILE, name + "expected ABI version 8, got 1");
  std::string layout = good;
  layout[16] = 7;
  std::string level = attn_function_level(forward.get());
  expectMapRefused(layout, ATTN_ERROR_WEIGHTS,
                   "forward: '" + path + "' expected weights packed as 0000000000000001 (level " +
                       level + "), got 0000000000000007 (level " + level + ")");
}

TEST_F(WeightsFileTest, FilesHoldNoBounds) {
  Function bounded = createFunction(library.get(), "bounded_weights");
  Tensor<int32_t> table({4}, 9);
  const char *names[] = {"table"};
  const DLTensor *tensors[] = {&table.dl};
  ASSERT_EQ(attn_weights_create(bounded.get(), names, tensors, 1, &loaded), ATTN_OK)
      << attn_last_error();
  std::string message = "bounded_weights: weight 'table' expected no bound for a file of packed "
                        "weights, got one";
  EXPECT_EQ(attn_weights_save(loaded, path.c_str()), ATTN_ERROR_WEIGHTS);
  EXPECT_EQ(attn_last_error(), message);
  EXPECT_FALSE(std::filesystem::exists(path));
  attn_weights *mapped = nullptr;
  EXPECT_EQ(attn_weights_map(bounded.get(), path.c_str(), &mapped), ATTN_ERROR_WEIGHTS);
  EXPECT_EQ(attn_last_error(), message);
}

TEST_F(WeightsFileTest, Unwritable) {
  EXPECT_EQ(attn_weights_save(weights.get(), "/nowhere/packed"), ATTN_ERROR_FILE);
  EXPECT_STREQ(attn_last_error(), "'/nowhere/packed': expected a file that can be written, got: No "
                                  "such file or directory");
}

TEST_F(WeightsFileTest, NoAddressSpace) {
  if (underSanitizer)
    GTEST_SKIP() << "a sanitizer takes more address space than any limit";
  write(std::string(1 << 20, ' '));
  rlimit before, limit;
  getrlimit(RLIMIT_AS, &before);
  limit = {1, before.rlim_max};
  setrlimit(RLIMIT_AS, &limit);
  attn_status status = map();
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(status, ATTN_ERROR_FILE);
  EXPECT_EQ(attn_last_error(),
            "'" + path + "': expected a file that can be mapped, got: Cannot allocate memory");
}

TEST_F(WeightsFileTest, MisalignedInTheFile) {
  expectLoadRefused(safetensors(R"({"scale":{"dtype":"F32","shape":[4],"data_offsets":[2,18]}})"),
                    ATTN_ERROR_ALIGNMENT,
                    "'scale' expected data aligned to 4 bytes in the file, got byte 2");
}

// Several threads save to one path at the same time, in a folder in which an earlier process of the same id left
// temporary files. The path then has the file of one of the threads, and the threads leave no temporary file.
TEST_F(WeightsFileTest, SavedByMany) {
  std::string left = path + "." + std::to_string(getpid()) + "-";
  for (int i = 0; i < 300; i += 2)
    std::ofstream(left + std::to_string(i));
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        failed += attn_weights_save(weights.get(), path.c_str()) != ATTN_OK;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failed, 0);
  ASSERT_EQ(map(), ATTN_OK) << attn_last_error();
  expectResultWith(loaded);
  for (int i = 0; i < 400; ++i)
    EXPECT_EQ(std::filesystem::remove(left + std::to_string(i)), i < 300 && i % 2 == 0) << i;
}

} // namespace
