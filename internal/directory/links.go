package directory

import (
	"os"
	"path/filepath"
)

// maxLinks is how many symbolic links are followed, as on Linux.
const maxLinks = 40

// Followed returns the path that symbolic links at path lead to, whether there is a file or
// not. A new file is made beside that path and renamed to it, so that a link stays one.
func Followed(path string) string {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break // not a link, or not there, which opening it reports
		}
		if dir, _ := filepath.Split(path); !filepath.IsAbs(to) {
			to = dir + to // not cleaned: dir may have links, too
		}
		path = to
	}
	return path
}
