// The files of the page at "/", built into the program.
#pragma once

#include <span>
#include <string_view>

namespace sol {

struct PageFile {
  std::string_view path;  // "/", "/style.css", ...
  std::string_view type;  // for Content-Type
  std::string_view content;
};

std::span<const PageFile> page_files();

}  // namespace sol
