package transport

import (
	"context"
	"errors"
)

// PageSize is the maximum page size of forges.
const PageSize = 100

// splits is the maximum number of pages per size and list that are split into smaller ones.
const splits = 5

// Pages reads a list. read requests one page, numbered for its size, and returns whether more entries follow. If a page is too
// long, because of the texts in it, Pages reads its entries in smaller pages. It omits an entry that is too long by itself, and
// whole pages once the limit on splits is reached: otherwise texts of strangers would cost requests without limit.
func Pages(ctx context.Context, read func(ctx context.Context, number, size int) (more bool, err error)) error {
	sizes := [...]int{PageSize, 20, 4, 1} // each size divides the previous one, so that pages start together
	left, level := [...]int{splits, splits, splits, 0}, 0
	for from := 0; from < 1000*PageSize; {
		size := sizes[level]
		more, err := read(withIntent(ctx, func(i *intent) { i.page, i.skipLong = size, left[level] == 0 }), from/size+1, size)
		if errors.Is(err, errTooLong) && left[level] > 0 {
			left[level]--
			level++
			continue
		}
		if err != nil || !more {
			return err
		}
		from += size
		for level > 0 && from%sizes[level-1] == 0 {
			level--
		}
	}
	return errors.New("the list has too many entries")
}
