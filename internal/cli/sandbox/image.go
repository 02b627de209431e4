package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/image"
	"github.com/ralph-pool/ralph/worktree/filecopy"
	"github.com/ralph-pool/ralph/worktree/git"
)

// imageFlags are the flags that build and remove an image.
type imageFlags struct {
	Engine  string
	file    string
	tag     string
	args    []string
	noCache bool
	pull    bool
}

// NewImage returns `ralph image`.
func NewImage(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "image", Short: "Build and remove the image that agents run in",
		Example: "  ralph image build\n  ralph image build --engine podman\n  ralph image remove", GroupID: compose.GroupSetUp,
	}
	build, remove := imageFlags{}, imageFlags{}
	b := newBuildCommand(a, "image", "build", &build)
	r := newRemoveCommand(a, "image", "remove", &remove)
	for _, c := range []struct {
		cmd *cobra.Command
		f   *imageFlags
	}{{b, &build}, {r, &remove}} {
		c.cmd.Flags().StringVar(&c.f.Engine, "engine", "", "the `engine`: docker or podman (default: "+
			"the configured sandbox's, else docker)")
		_ = c.cmd.RegisterFlagCompletionFunc("engine", cobra.FixedCompletions(compose.Engines(), cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.AddCommand(b, r)
	return cmd
}

// NewEngine returns the same commands under the name of an engine: `ralph docker build-image`.
func NewEngine(a *compose.App, engine string) *cobra.Command {
	cmd := &cobra.Command{
		Use: engine, Short: "Build and remove images with " + engine,
		Example: "  ralph " + engine + " build-image\n  ralph " + engine + " remove-image", GroupID: compose.GroupSetUp,
	}
	build, remove := imageFlags{Engine: engine}, imageFlags{Engine: engine}
	cmd.AddCommand(newBuildCommand(a, engine, "build-image", &build), newRemoveCommand(a, engine, "remove-image", &remove))
	return cmd
}

func newBuildCommand(a *compose.App, parent, use string, f *imageFlags) *cobra.Command {
	typed := "  ralph " + parent + " " + use
	cmd := &cobra.Command{
		Use: use, Short: "Build the image",
		Long: "Build the image from the Dockerfile (Containerfile for podman) in .ralph, " +
			"or from the one that --file names. The build can\n" +
			"copy the files of that folder, but none that git ignores. The tag tells the repository and what the image was built\n" +
			"from. The engine's output and exit status are passed on.",
		Example: typed + "\n" + typed + " --file build/Dockerfile --build-arg NODE=24",
		Args:    exit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return buildImage(a, cmd, *f)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "the build `file`")
	flags.StringVar(&f.tag, "image", "", "the image's `tag` (default: ralph:<repository>-<hash>)")
	flags.StringArrayVar(&f.args, "build-arg", nil, "`KEY=VALUE` for the build")
	flags.BoolVar(&f.noCache, "no-cache", false, "build without the cache")
	flags.BoolVar(&f.pull, "pull", false, "pull a newer base image from the registry")
	return cmd
}

// BuildImage builds the repository's image with an engine.
func BuildImage(a *compose.App, cmd *cobra.Command, engine string) error {
	return buildImage(a, cmd, imageFlags{Engine: engine})
}

func buildImage(a *compose.App, cmd *cobra.Command, f imageFlags) error {
	return runImage(cmd, a, f, func(ctx context.Context, e image.Engine, file, tag string, args []string) error {
		files, remove, err := buildContext(ctx, filepath.Dir(file))
		if err != nil {
			return err
		}
		defer remove()
		if err := e.Build(ctx, image.Build{
			File:    file,
			Tag:     tag,
			Context: files,
			Args:    args,
			NoCache: f.noCache,
			Pull:    f.pull,
		}); err != nil {
			return err
		}
		a.UI.Printf("Built %s from %s\n", screen.CleanLine(tag), screen.CleanLine(file))
		if top, err := a.Top(ctx); err == nil && tag != image.Usual(top, e.Name) {
			a.UI.Printf("Runs do not use this image by default: give --image %s, or set image: %[1]s in .ralph/config.yaml\n",
				screen.CleanLine(tag))
		}
		return nil
	})
}

func newRemoveCommand(a *compose.App, parent, use string, f *imageFlags) *cobra.Command {
	typed := "  ralph " + parent + " " + use
	cmd := &cobra.Command{
		Use: use, Short: "Remove the image", Example: typed + "\n" + typed + " --image my-agent:1", Args: exit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runImage(cmd, a, *f, func(ctx context.Context, e image.Engine, _, tag string, _ []string) error {
				if err := e.Remove(ctx, tag); err != nil {
					return err
				}
				a.UI.Printf("Removed %s\n", screen.CleanLine(tag))
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "the build `file` that the tag is derived from")
	cmd.Flags().StringVar(&f.tag, "image", "", "the image's `tag` (default: the one that build makes)")
	cmd.Flags().StringArrayVar(&f.args, "build-arg", nil, "`KEY=VALUE` of the build")
	return cmd
}

func runImage(
	cmd *cobra.Command, a *compose.App, f imageFlags, do func(ctx context.Context, e image.Engine, file, tag string, args []string) error,
) error {
	if err := a.CheckRepo(); err != nil {
		return err
	}
	top, err := a.Top(cmd.Context())
	outside := err != nil
	if f.Engine, err = engine(a, cmd, f.Engine, top); err != nil {
		return err
	}
	if outside {
		top = a.Dir() // an image needs no repository
	}
	args, err := image.Args(f.args)
	if err != nil {
		return exit.Usagef("--build-arg: %v", err)
	}
	file, tag := f.file, f.tag
	if file != "" {
		file = a.Path(file)
	} else if file, err = image.File(top, f.Engine); err != nil && tag == "" {
		return &exit.Error{
			Status: exit.Usage, Err: err,
			Hint: "create one with: ralph init --sandbox " + f.Engine + "; or name your own with --file",
		}
	}
	if tag == "" {
		if tag, err = image.Tag(top, file, args); err != nil {
			return &exit.Error{Status: exit.Usage, Err: err}
		}
	}
	if f.Engine == "docker" { // podman has no daemon
		if err := container.Answers(cmd.Context(), container.Docker(), a.Host.Env); err != nil && !errors.Is(err, exec.ErrNotFound) {
			return &exit.Error{Status: exit.Parked, Err: err}
		}
	}
	err = do(cmd.Context(), image.Engine{
		Name: f.Engine, Env: a.Host.Env, Stdout: a.UI.Out, Stderr: a.UI.Err, Interrupt: a.Host.Interrupt,
	}, file, tag, args)
	var ended *image.ExitError
	switch {
	case errors.As(err, &ended):
		return &exit.Error{Status: ended.Code, Err: err}
	case errors.Is(err, exec.ErrNotFound):
		return &exit.Error{Status: exit.Parked, Err: err, Hint: "install it, or name another engine with --engine"}
	case errors.Is(err, image.ErrNoImage):
		return fmt.Errorf("%s has no image %s: it was removed or never built; name another with --image or --engine", f.Engine, tag)
	}
	return err
}

// engine returns the named engine, else the one that the configuration uses, else the first.
func engine(a *compose.App, cmd *cobra.Command, named, top string) (string, error) {
	if cmd.Flags().Changed("engine") || named != "" {
		if !slices.Contains(compose.Engines(), named) {
			return "", exit.Usagef("--engine: %q is not one of docker, podman", named)
		}
		return named, nil
	}
	loaded, err := config.Load(a.Sources(nil, top))
	switch {
	case err != nil:
		return "", err
	case slices.Contains(compose.Engines(), loaded.Config.Sandbox):
		return loaded.Config.Sandbox, nil
	}
	return compose.Engines()[0], nil
}

// buildContext copies the files from which an image may be built: all of the folder, except those that git ignores, because
// they may be secrets, and git's own folder. remove deletes the copy.
func buildContext(ctx context.Context, dir string) (copied string, remove func(), err error) {
	paths, err := contextFiles(ctx, dir)
	if err != nil {
		return "", nil, fmt.Errorf("files for the image: %w", err)
	}
	copied, drop, err := tempdir.Held("ralph-image-")
	if err != nil {
		return "", nil, fmt.Errorf("files for the image: %w", err)
	}
	remove = func() { _ = drop() }
	if err := filecopy.Copy(ctx, dir, copied, paths, nil, filecopy.AnyLink); err != nil {
		remove()
		return "", nil, fmt.Errorf("files for the image: %w", err)
	}
	return copied, remove, nil
}

// contextFiles lists the files and links of the folder that are not ignored, without .env.
func contextFiles(ctx context.Context, dir string) (paths []string, err error) {
	all, err := unignored(ctx, git.New(dir))
	if err != nil {
		if all, err = walk(dir); err != nil { // not a repository
			return nil, err
		}
	}
	for _, path := range all {
		info, err := os.Lstat(filepath.Join(dir, path))
		isFile := err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0)
		if isFile && filepath.Base(path) != ".env" {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// walk lists everything except git directories.
func walk(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, relErr := filepath.Rel(dir, path)
		if relErr == nil {
			paths = append(paths, rel)
		}
		return err
	})
	return paths, err
}

// unignored lists the files of the runner's folder that git tracks or would add. Tracked files may be missing.
func unignored(ctx context.Context, g git.Runner) ([]string, error) {
	out, err := g.Output(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), nil
}
