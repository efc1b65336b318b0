package commit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

// group is what is committed at once.
type group struct {
	tickets []*Ticket
	size    int
	taken   bool
	// turn gives one writer of the group the turn, for which it has room. It is closed
	// when the outcome is known.
	turn chan struct{}
}

// Ticket is the place of a write in its group. A Write embeds one, so that both are one
// allocation.
type Ticket struct {
	write Write
	group *group
	err   error // known when the group is done
	// raises: the write only raises a floor. deletes: it only deletes.
	raises, deletes bool
}

func (t *Ticket) place() *Ticket { return t }

// read makes the writes read, and returns their logs.
func (g *group) read() (logs []Log) {
	for _, t := range g.tickets {
		if l := t.write.Log(); !slices.Contains(logs, l) { // there are few
			logs = append(logs, l)
		}
	}
	for _, l := range logs {
		l.Prepare(func() { each(g.tickets, l, Write.Read) })
	}
	return logs
}

// stage stages the writes. It returns the staged ones, and the refused ones that come after a
// staged one. If user code panics or ends the goroutine, all of the group fail, and nothing is
// staged.
func (g *group) stage(b *journal.Batch, logs []Log) (staged, refused []*Ticket) {
	complete := false
	defer func() {
		if !complete {
			g.abandon(logs)
		}
	}()
	staged = make([]*Ticket, 0, len(g.tickets))
	for _, t := range g.tickets {
		entries, floors := len(b.Entries), len(b.Floors)
		t.err = t.write.Stage(b)
		added := b.Entries[entries:]
		t.raises = len(added) == 0 && len(b.Floors) > floors
		t.deletes = len(added) > 0 && !slices.ContainsFunc(added, isNoDeletion)
		if t.err == nil {
			staged = append(staged, t)
		} else if len(staged) > 0 {
			refused = append(refused, t)
		}
	}
	complete = true
	return staged, refused
}

func isNoDeletion(e journal.Entry) bool { return !e.Deletes() }

// deletions returns the writes of a group for which there is no space that may have some alone: the deletions, if there
// are other writes, too.
func (g *group) deletions() []*Ticket {
	var deletions []*Ticket
	for _, t := range g.tickets {
		if t.err == nil && t.deletes {
			deletions = append(deletions, t)
		}
	}
	if len(deletions) == len(g.tickets) {
		return nil
	}
	return deletions
}

// abandon fails the writes of a group that is not going to be committed.
func (g *group) abandon(logs []Log) {
	for _, l := range logs {
		l.Rollback()
	}
	for _, t := range g.tickets {
		t.err = &usercode.PanicError{Func: "Schema", Value: errAbandoned}
	}
}

// errAbandoned is why a write fails whose group is abandoned.
var errAbandoned = fmt.Errorf("%w, or by a panic, while it staged several writes: none of them was written", usercode.ErrGoexit)

// each calls do of the writes of one log.
func each(tickets []*Ticket, l Log, do func(Write)) {
	for _, t := range tickets {
		if t.write.Log() == l {
			do(t.write)
		}
	}
}

// failWrites fails the writes of a group with err, and returns those that have succeeded all the same:
// if raised, the ones that only raise a floor.
func failWrites(staged, refused []*Ticket, err error, raised bool) (succeeded []*Ticket) {
	for _, t := range staged {
		if raised && t.raises {
			succeeded = append(succeeded, t)
		} else {
			t.err = err
		}
	}
	for _, t := range refused { // perhaps because of writes that have now failed
		t.err = certain(err)
	}
	return succeeded
}

// certain returns the error of a write that was refused before its group failed with
// err: nothing of it was in the batch, so its outcome is not uncertain.
func certain(err error) error {
	var failed *journal.FailedError
	if errors.As(err, &failed) && failed.Uncertain {
		return &journal.FailedError{Path: failed.Path, Cause: failed.Cause}
	}
	return err
}

// publish makes durable writes visible, those of one log after those of another. A watch's
// consumer, which is notified meanwhile, can end the goroutine.
func publish(logs []Log, staged []*Ticket) {
	if len(logs) == 0 {
		return
	}
	defer publish(logs[1:], staged)
	logs[0].Commit(func() { each(staged, logs[0], Write.Publish) })
}
