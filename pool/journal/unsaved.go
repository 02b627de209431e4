package journal

import (
	"context"
	"fmt"
	"sync"
)

// Unsaved is a Store that keeps records in memory that another store failed to save. So a run whose last state could not be
// stored continues from that state while the process lives. It is safe for concurrent use.
type Unsaved struct {
	Store

	saving sync.RWMutex // locked while a record is saved again, so that it does not replace a newer one

	mu      sync.Mutex
	records map[string]Record // guarded by mu; by run
}

// Save stores the record. After an error, Find returns this state if the store has an earlier one of the run.
func (u *Unsaved) Save(ctx context.Context, r Record) error {
	u.saving.RLock()
	defer u.saving.RUnlock()
	err := u.Store.Save(ctx, r)
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
	u.saving.RLock()
	defer u.saving.RUnlock()
	u.mu.Lock()
	delete(u.records, run)
	u.mu.Unlock()
	return u.Store.Forget(ctx, run)
}

// Find returns records, including states that could not be saved. It first tries again to save those of ended runs.
func (u *Unsaved) Find(ctx context.Context, q Query) ([]Record, error) {
	u.saveEnded(ctx)
	u.saving.RLock()
	defer u.saving.RUnlock()
	found, err := u.Store.Find(ctx, q)
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []Record
	for _, r := range found {
		if known, ok := u.records[r.ID]; ok {
			r = known
		}
		if !q.Open || r.Ended.IsZero() {
			list = append(list, r)
		}
	}
	return list, err
}

// saveEnded tries again to save the records of ended runs, up to the first failure.
func (u *Unsaved) saveEnded(ctx context.Context) {
	if len(u.ended()) == 0 { // nearly always: wait for no other call
		return
	}
	u.saving.Lock()
	defer u.saving.Unlock()
	for _, r := range u.ended() {
		if u.Store.Save(ctx, r) != nil {
			return // the next Find tries again
		}
		u.mu.Lock()
		delete(u.records, r.ID)
		u.mu.Unlock()
	}
}

// ended returns the records of ended runs.
func (u *Unsaved) ended() (list []Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.records {
		if !r.Ended.IsZero() {
			list = append(list, r)
		}
	}
	return list
}
