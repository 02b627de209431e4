package redact

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/leak"
)

// fileLimit is the maximum size in bytes of a file whose values count. A larger one is data.
const fileLimit = 1 << 20

const (
	// tokenFiles is the maximum number of files in a folder for which random tokens count. With more it has dependencies or data.
	tokenFiles = 1000
	// mostTokens is the maximum number of random tokens in a named file, or in all files of a folder. With more they are data.
	mostTokens = 300
)

// InFiles returns the secrets in files that a folder has at these relative paths: what is assigned to names, and tokens that look
// random. In a folder among these paths names only count in files of environment variables (.env, .env.test, test.env): others may be
// programs. The path "." stands for such files alone. InFiles follows no link out of the folder, and leaves out what it cannot read.
func InFiles(folder string, paths []string) (values []string) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, path := range paths {
		path = filepath.ToSlash(filepath.Clean(path))
		var others []string
		_ = fs.WalkDir(root.FS(), path, func(at string, e fs.DirEntry, err error) error {
			base := filepath.Base(at)
			variables := base == ".env" || strings.HasPrefix(base, ".env.") || strings.HasSuffix(base, ".env")
			switch {
			case err != nil || e.IsDir(): // a folder that cannot be read has nothing to add
			case variables || at == path:
				text := readSmall(root, at)
				values = append(append(values, leak.Assigned(text, variables)...), tokens(text)...)
			case path != "." && len(others) <= tokenFiles:
				others = append(others, at)
			}
			return nil //nolint:nilerr // see above
		})
		var found []string
		for _, at := range others {
			if len(others) <= tokenFiles && len(found) <= mostTokens {
				found = append(found, tokens(readSmall(root, at))...)
				slices.Sort(found)
				found = slices.Compact(found)
			}
		}
		if len(found) <= mostTokens {
			values = append(values, found...)
		}
	}
	return values
}

// tokens returns the random tokens in a text; none in data.
func tokens(text []byte) []string {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	if found := leak.Tokens(text); len(found) <= mostTokens {
		return found
	}
	return nil
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
