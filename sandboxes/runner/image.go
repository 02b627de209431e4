package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/image"
)

// Image is an image whose tag is derived from its content, so that it is rebuilt exactly when the content changes.
type Image struct {
	// Name is the part of the tag before the colon; default "ralph-runner".
	Name string
	// Engine builds the image. Its output goes to build.log.
	Engine image.Engine
	// Build is the build. File defaults to Dockerfile in Context; Tag is ignored.
	Build image.Build
	// Rebuild builds the image even when it exists.
	Rebuild bool
	// Provider returns a provider for the tag. Its Check must fail if the image does not exist.
	Provider func(tag string) sandboxes.Provider
}

// Tag returns the image's name with the tag for its current content.
func (im *Image) Tag() (string, error) {
	b := im.Build
	b.File = cmp.Or(b.File, filepath.Join(b.Context, "Dockerfile"))
	return image.ContentTag(cmp.Or(im.Name, "ralph-runner"), b)
}

// ready returns the provider of the image, after building the image if necessary.
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
	log, err := r.create(buildLogName)
	if err != nil {
		return nil, "", err
	}
	b, engine := im.Build, im.Engine
	b.File, b.Tag, engine.Stdout, engine.Stderr = cmp.Or(b.File, filepath.Join(b.Context, "Dockerfile")), tag, log, log
	if err := errors.Join(engine.Build(ctx, b), log.Close()); err != nil {
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
