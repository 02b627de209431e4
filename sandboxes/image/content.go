package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
)

// ContentTag returns a tag that changes whenever the image would: "name:<hash>". The hash covers the build file, the
// arguments, and the path, type, executable bit and content of every file in the build folder, except .git.
func ContentTag(name string, b Build) (string, error) {
	h := sha256.New()
	err := hashBuild(h, b)
	if err != nil {
		return "", fmt.Errorf("name the image: %w", err)
	}
	return name + ":" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}

func hashBuild(h hash.Hash, b Build) error {
	hashTexts(h, slices.Sorted(slices.Values(b.Args))...)
	file, err := os.ReadFile(b.File)
	if err != nil {
		return err
	}
	hashTexts(h, string(file))
	root, err := os.OpenRoot(b.Context)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git" && entry.IsDir():
			return fs.SkipDir
		case entry.Name() == ".git":
			return nil
		}
		return hashEntry(h, root, name, entry)
	})
}

// hashEntry hashes a file, link or folder.
func hashEntry(h hash.Hash, root *os.Root, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	kind := info.Mode().Type().String()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		hashTexts(h, name, kind, to)
		return err
	case !info.Mode().IsRegular():
		hashTexts(h, name, kind)
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	content := sha256.New()
	if _, err := io.Copy(content, f); err != nil {
		return err
	}
	hashTexts(h, name, kind, fmt.Sprint(info.Mode()&0o111 != 0), string(content.Sum(nil)))
	return nil
}

// hashTexts hashes texts unambiguously: different lists of texts have different encodings.
func hashTexts(h hash.Hash, texts ...string) {
	_, _ = fmt.Fprintf(h, "%d\n", len(texts))
	for _, t := range texts {
		_, _ = fmt.Fprintf(h, "%d\n%s", len(t), t)
	}
}
