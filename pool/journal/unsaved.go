package journal

import (
	"context"
	"fmt"
	"sync"
)

// saveTries is how often saving a record is tried.
const saveTries = 3

// Unsaved is a Store that keeps records in memory that another store failed to save. So a run whose last state could not be
// stored continues from that state while the process lives. It is safe for concurrent use.
type Unsaved struct {
	Store

	mu      sync.Mutex
	records map[string]Record // guarded by mu; by run
}

// Save stores the record. After an error, Find returns it nevertheless.
func (u *Unsaved) Save(ctx context.Context, r Record) (err error) {
	for range saveTries {
		if err = u.Store.Save(ctx, r); err == nil {
			break
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		delete(u.records, r.ID)
		return nil
	}
	if u.records == nil {
		u.records = map[string]Record{}
	}
	u.records[r.ID] = r
	return fmt.Errorf("the journal cannot be written: %w", err)
}

// Forget deletes the record of a run that did nothing.
func (u *Unsaved) Forget(ctx context.Context, run string) error {
	u.mu.Lock()
	delete(u.records, run)
	u.mu.Unlock()
	return u.Store.Forget(ctx, run)
}

// Find returns records, including those that could not be saved. It tries again to save those of ended runs.
func (u *Unsaved) Find(ctx context.Context, q Query) ([]Record, error) {
	found, err := u.Store.Find(ctx, q)
	var list []Record
	for _, r := range found {
		u.mu.Lock()
		known, ok := u.records[r.ID]
		u.mu.Unlock()
		if ok {
			r = known
		}
		if ok && !r.Ended.IsZero() {
			_ = u.Save(ctx, r) // if it fails, the next Find tries again
		}
		if !q.Open || r.Ended.IsZero() {
			list = append(list, r)
		}
	}
	return list, err
}
