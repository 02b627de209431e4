package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Image is an image that is named by what it is built from, so that it is built again when that changes and only then.
// The engine is the caller's: package image builds, and package container makes the provider.
type Image struct {
	// Name is the part of the tag before the colon; default "ralph-runner".
	Name string
	// Context is the absolute path of the folder that the build file copies from.
	Context string
	// File is the absolute path of the build file; default Dockerfile in Context.
	File string
	// Args are the build arguments, "KEY=VALUE".
	Args []string
	// Rebuild builds the image even when it is there.
	Rebuild bool

	// Build builds the image under a tag; what the engine prints belongs in log.
	Build func(ctx context.Context, tag string, log io.Writer) error
	// Provider makes the provider that uses the tag. Its Check has to fail while there is no such image.
	Provider func(tag string) sandboxes.Provider
}

func (im *Image) problem() error {
	switch {
	case im == nil:
		return nil
	case !filepath.IsAbs(im.Context):
		return fmt.Errorf("image: build folder %q is not an absolute path", im.Context)
	case im.File != "" && !filepath.IsAbs(im.File):
		return fmt.Errorf("image: build file %q is not an absolute path", im.File)
	case im.Build == nil || im.Provider == nil:
		return errors.New("image: both Build and Provider are needed")
	}
	return nil
}

// ready gives the provider of the image, which it builds where it has to.
func (im *Image) ready(ctx context.Context, r *record) (sandboxes.Provider, string, error) {
	tag, err := im.Tag()
	if err != nil {
		return nil, "", err
	}
	provider := im.Provider(tag)
	var missing error
	if !im.Rebuild {
		if missing = provider.Check(ctx); missing == nil {
			return provider, tag, nil
		}
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	log, err := r.buildLog()
	if err != nil {
		return nil, "", err
	}
	if err := errors.Join(im.Build(ctx, tag, log), log.Close()); err != nil {
		err = fmt.Errorf("build image %s: %w; its output is in %s", tag, err, filepath.Join(r.dir, buildLogName))
		if missing != nil {
			err = fmt.Errorf("%w (it was built because: %w)", err, missing)
		}
		return nil, "", err
	}
	if err := provider.Check(ctx); err != nil {
		return nil, "", fmt.Errorf("use image %s: %w", tag, err)
	}
	return provider, tag, nil
}

// Tag is the image's name: a hash of the build file, the arguments, and every file in the build folder with its name,
// kind and right to be executed. Only .git is left out.
func (im *Image) Tag() (string, error) {
	h := sha256.New()
	part(h, slices.Sorted(slices.Values(im.Args))...)
	file, err := os.ReadFile(cmp.Or(im.File, filepath.Join(im.Context, "Dockerfile")))
	if err != nil {
		return "", fmt.Errorf("name the image: %w", err)
	}
	part(h, string(file))
	root, err := os.OpenRoot(im.Context)
	if err != nil {
		return "", fmt.Errorf("name the image: %w", err)
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return hashEntry(h, root, name, entry)
	})
	if err != nil {
		return "", fmt.Errorf("name the image: %w", err)
	}
	return cmp.Or(im.Name, "ralph-runner") + ":" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// hashEntry adds a file, link or folder.
func hashEntry(h hash.Hash, root *os.Root, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	kind := info.Mode().Type().String()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		part(h, name, kind, to)
		return err
	case !info.Mode().IsRegular():
		part(h, name, kind)
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
	part(h, name, kind, fmt.Sprint(info.Mode()&0o111 != 0), string(content.Sum(nil)))
	return nil
}

// part adds texts so that no two lists of them give the same bytes.
func part(h hash.Hash, texts ...string) {
	_, _ = fmt.Fprintf(h, "%d\n", len(texts))
	for _, t := range texts {
		_, _ = fmt.Fprintf(h, "%d\n%s", len(t), t)
	}
}
