package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes/mirror"
)

// copyInside is what the helper does for files: list ROLE DIR, pack DIR, unpack DIR, remove DIR.
func copyInside(args []string, in io.Reader, out io.Writer) error {
	conceal()
	root, err := os.OpenRoot(args[len(args)-1])
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	switch {
	case args[0] == insideList && len(args) == 3:
		list, err := mirror.List(root, mirror.Skipping(skipOf(args[1])))
		if err != nil {
			return err
		}
		return mirror.Encode(out, list)
	case args[0] == insidePack:
		paths, err := readPaths(in)
		if err != nil {
			return err
		}
		var list []mirror.Entry
		for _, p := range paths {
			list = append(list, mirror.Entry{Path: p, Kind: mirror.File})
		}
		return mirror.Pack(out, root, list)
	case args[0] == insideUnpack:
		return mirror.Unpack(in, root)
	case args[0] == insideRemove:
		paths, err := readPaths(in)
		if err != nil {
			return err
		}
		return mirror.Remove(root, paths)
	}
	return errors.New("there is no such order")
}

func readPaths(in io.Reader) ([]string, error) {
	text, err := io.ReadAll(in)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return strings.Split(string(text), "\x00"), nil
}

// own gives folders to the user that commands run as: own UID GID DIR…
func own(args []string) error {
	uid, err := strconv.Atoi(args[0])
	gid, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	for _, dir := range args[2:] {
		if err := os.Chown(dir, uid, gid); err != nil {
			return fmt.Errorf("give the sandbox its folders: %w", err)
		}
	}
	return nil
}
