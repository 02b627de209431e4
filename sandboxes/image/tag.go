package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tag returns the name of a repository's image: "ralph:<repository>-<hash>". The hash covers the build file, the build
// arguments and the path of the repository: a change of one of them needs a new image, and repositories with the same name
// get different images.
//
// The hash does not cover files that the build copies, or every commit would need a new image; [ContentTag] covers them.
func Tag(root, file string, args []string) (string, error) {
	h := sha256.New()
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("name the image: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("name the image: %w", err)
	}
	for _, part := range append([]string{root}, slices.Sorted(slices.Values(args))...) {
		_, _ = fmt.Fprintf(h, "\x00%d\x00%s", len(part), part)
	}
	return "ralph:" + Clean(filepath.Base(root)) + "-" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// longestName leaves space for the hash in a tag, which has at most 128 characters.
const longestName = 100

// Usual returns the tag of the image of the repository's build file for an engine, with default arguments; "" if there is
// none.
func Usual(root, engine string) string {
	file, err := File(root, engine)
	if err != nil {
		return ""
	}
	args, err := Args(nil)
	if err != nil {
		return ""
	}
	tag, err := Tag(root, file, args)
	if err != nil {
		return ""
	}
	return tag
}

// Clean converts a repository's name to a valid part of a tag.
func Clean(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '.':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	clean := strings.Trim(b.String(), ".-")
	if clean = strings.Trim(clean[:min(len(clean), longestName)], ".-"); clean == "" {
		return "local"
	}
	return clean
}

// Folder is the folder of a repository's own build file. A build file elsewhere belongs to the project, and agents may
// change it.
const Folder = ".ralph"

// File returns the repository's build file for an engine: Dockerfile (docker) or Containerfile (podman) in Folder. If that
// is missing, either engine uses the other's file.
func File(root, engine string) (string, error) {
	names := []string{"Dockerfile", "Containerfile"}
	if engine == "podman" {
		slices.Reverse(names)
	}
	for _, name := range names {
		path := filepath.Join(root, Folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s has no %s in %s", root, names[0], Folder)
}
