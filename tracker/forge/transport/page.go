package transport

import (
	"context"
	"errors"
)

// PageSize is the longest page that forges give.
const PageSize = 100

// splits is how many pages of a size are read in smaller ones for each list.
const splits = 5

// Pages reads a list. Read asks for one page, whose number fits its size, and says whether more entries follow. Where a page is
// too long, because of what somebody wrote there, its entries are read in smaller ones. What is too long as a single entry, or when
// many pages were too long before it, is left out: else texts of strangers would cost requests for each.
func Pages(ctx context.Context, read func(ctx context.Context, number, size int) (more bool, err error)) error {
	sizes := [...]int{PageSize, 20, 4, 1} // each divides those before, so that their pages begin together
	left, level := [...]int{splits, splits, splits, 0}, 0
	for from := 0; from < 1000*PageSize; {
		size := sizes[level]
		more, err := read(with(ctx, func(i *intent) { i.page, i.leave = size, left[level] == 0 }), from/size+1, size)
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
