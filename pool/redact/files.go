package redact

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/leak"
)

// fileLimit is the maximum size in bytes of a file whose values count. A larger one is data.
const fileLimit = 1 << 20

// InFiles returns the secrets in files that a folder has at these relative paths. Of a folder among them only files of environment
// variables count (.env, .env.test, test.env): others may be programs. It follows no link out of the folder, and leaves out what it
// cannot read.
func InFiles(folder string, paths []string) (values []string) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, path := range paths {
		path = filepath.Clean(path)
		_ = fs.WalkDir(root.FS(), filepath.ToSlash(path), func(at string, e fs.DirEntry, err error) error {
			base := filepath.Base(at)
			variables := base == ".env" || strings.HasPrefix(base, ".env.") || strings.HasSuffix(base, ".env")
			if err == nil && !e.IsDir() && (variables || at == filepath.ToSlash(path)) {
				values = append(values, leak.Assigned(readSmall(root, at), variables)...)
			}
			return nil // a folder that cannot be read has nothing to add
		})
	}
	return values
}

// readSmall returns the content of a regular file, or nothing.
func readSmall(root *os.Root, path string) []byte {
	info, err := root.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > fileLimit {
		return nil
	}
	f, err := root.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, fileLimit)) // what can be read counts
	return text
}
