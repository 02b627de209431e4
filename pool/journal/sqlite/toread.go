package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// OpenToRead is Open for a caller that only reads. A journal that cannot be written, as on a full or read-only disk, will do.
func OpenToRead(ctx context.Context, path string, log *slog.Logger) (*Store, error) {
	s, err := Open(ctx, path, log)
	failed, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return s, err
	}
	switch failed.Code() & 0xff {
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_IOERR, lib.SQLITE_FULL:
	default:
		return nil, err
	}
	options := url.Values{"_pragma": {"busy_timeout(15000)"}, "mode": {"ro"}}
	// SQLite makes files beside the journal even to read it, unless it may take it for unchangeable. Without a log of recent
	// changes no process has it open.
	if info, lerr := os.Stat(path + "-wal"); lerr != nil || info.Size() == 0 {
		options.Set("immutable", "1")
	}
	if s, rerr := openWith(ctx, path, log, options); rerr == nil {
		return s, nil
	}
	return nil, err
}
