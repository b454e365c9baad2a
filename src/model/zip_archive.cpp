#include "model/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/fail.h"

namespace sol {
namespace {

using Bytes = std::span<const std::byte>;

// PKWARE's APPNOTE.TXT, 4.3: the end record, the directory's entries, the header before an entry.
constexpr uint32_t end_signature = 0x06054b50, entry_signature = 0x02014b50,
                   local_signature = 0x04034b50;
constexpr size_t end_size = 22, entry_size = 46, local_size = 30, longest_comment = 65535;

// Little-endian numbers within bounds that were checked.
uint32_t u16(Bytes b, size_t at) {
  return static_cast<uint32_t>(b[at]) | static_cast<uint32_t>(b[at + 1]) << 8;
}
uint32_t u32(Bytes b, size_t at) {
  return u16(b, at) | u16(b, at + 2) << 16;
}

std::optional<size_t> find_end(Bytes file) {
  if (file.size() < end_size) return std::nullopt;
  const size_t last = file.size() - end_size;
  for (size_t at = last + 1; at-- > last - std::min(last, longest_comment);)
    if (u32(file, at) == end_signature && at + end_size + u16(file, at + 20) == file.size())
      return at;
  return std::nullopt;
}

struct Entry {
  std::string name;
  Bytes content;
};

class Directory {
 public:
  Directory(Bytes file, std::string where) : file_(file), where_(std::move(where)) {
    const auto end = find_end(file_);
    if (!end)
      fail(
          "{}: not a zip archive, or truncated; a checkpoint must be saved by PyTorch 1.6 or later",
          where_);
    count_ = u16(file_, *end + 10);
    at_ = u32(file_, *end + 16);
    if (count_ == 0xffff || at_ == 0xffffffff) fail("{}: too large for this program", where_);
    if (at_ > *end) fail("{}: its directory lies outside the file", where_);
    end_ = *end;
  }

  size_t count() const { return count_; }

  Entry next() {
    require(at_, entry_size, end_, "its directory");
    if (u32(file_, at_) != entry_signature) fail("{}: its directory is damaged", where_);
    const size_t name_size = u16(file_, at_ + 28);
    const size_t size_of_entry =
        entry_size + name_size + u16(file_, at_ + 30) + u16(file_, at_ + 32);
    require(at_, size_of_entry, end_, "its directory");
    Entry entry;
    entry.name.assign(reinterpret_cast<const char*>(file_.data()) + at_ + entry_size, name_size);
    const uint32_t flags = u16(file_, at_ + 8), method = u16(file_, at_ + 10);
    if ((flags & 1) != 0) fail("{}: {} is encrypted", where_, entry.name);
    if (method != 0)
      fail("{}: {} is compressed (method {}); torch.save writes entries as they are", where_,
           entry.name, method);
    entry.content = content(entry.name, u32(file_, at_ + 42), u32(file_, at_ + 20));
    if (u32(file_, at_ + 24) != entry.content.size())
      fail("{}: {} has two different sizes", where_, entry.name);
    const auto* data = reinterpret_cast<const Bytef*>(entry.content.data());
    if (crc32_z(0, data, entry.content.size()) != u32(file_, at_ + 16))
      fail("{}: {} is damaged: its checksum is wrong", where_, entry.name);
    at_ += size_of_entry;
    return entry;
  }

 private:
  void require(size_t at, size_t size, size_t limit, const std::string& what) const {
    if (at > limit || size > limit - at) fail("{}: {} lies outside the file", where_, what);
  }

  Bytes content(const std::string& name, size_t local, size_t size) const {
    require(local, local_size, end_, name);
    if (u32(file_, local) != local_signature) fail("{}: {} has no header", where_, name);
    const size_t data = local + local_size + u16(file_, local + 26) + u16(file_, local + 28);
    require(data, size, end_, name);
    return file_.subspan(data, size);
  }

  Bytes file_;
  std::string where_;
  size_t count_ = 0, at_ = 0, end_ = 0;
};

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& path) : file_(path) {
  Directory directory(file_.bytes(), path.string());
  for (size_t i = 0; i < directory.count(); ++i) {
    Entry entry = directory.next();
    if (!entries_.emplace(entry.name, entry.content).second)
      fail("{}: {} is there twice", path.string(), entry.name);
  }
}

}  // namespace sol
