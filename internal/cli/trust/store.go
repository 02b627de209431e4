package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/disk"
)

// maxRecord is the maximum size of a record in bytes: no configuration is that large.
const maxRecord = 4 << 20

// Store stores a record for each checkout in a folder of the user, which no repository can choose.
type Store struct {
	Dir string // created if missing, with access for the user only
}

// record is the content of a record's file.
type record struct {
	Repository string `json:"repository"` // real path of the checkout
	Values     Values `json:"values"`
}

// place returns the real path of the checkout at top, and the file of its record.
func (s Store) place(top string) (repository, file string, err error) {
	if repository, err = filepath.EvalSymlinks(top); err != nil {
		return "", "", fmt.Errorf("trust: %w", err)
	}
	if repository, err = filepath.Abs(repository); err != nil {
		return "", "", fmt.Errorf("trust: %w", err)
	}
	return repository, filepath.Join(s.Dir, sum(repository)[:32]+".json"), nil
}

// Trusted returns the values that were accepted for the checkout at top; empty: none. An unreadable record is an error.
func (s Store) Trusted(top string) (Values, error) {
	repository, file, err := s.place(top)
	if err != nil {
		return nil, err
	}
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("trust: %w; XDG_STATE_HOME names another place", err)
	}
	defer func() { _ = in.Close() }()
	var r record
	data, err := io.ReadAll(io.LimitReader(in, maxRecord))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Repository != repository {
		err = errors.New("it is of another repository")
	}
	if err != nil {
		return nil, fmt.Errorf("trust: %s: %w; forget it with: ralph trust --revoke", file, err)
	}
	return r.Values, nil
}

// Trust stores the values as accepted for the checkout at top. A crash leaves the old record or the new one.
func (s Store) Trust(top string, v Values) error {
	repository, file, err := s.place(top)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(record{repository, v}, "", "  ")
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("trust: %w; XDG_STATE_HOME names another place", err)
	}
	if err := disk.WriteFile(file, append(data, '\n'), 0o600, disk.Power); err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	return nil
}

// Forget removes the record of the checkout at top, and reports whether there was one.
func (s Store) Forget(top string) (bool, error) {
	_, file, err := s.place(top)
	if err != nil {
		return false, err
	}
	if err := os.Remove(file); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("trust: %w", err)
	}
	return true, nil
}
