package replay

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
)

// useCheckpoints makes h save its position in the file of checkpoints and, with Continue, resume from
// the position that is there.
func (o *Options) useCheckpoints(h *load.History) (err error) {
	if o.Checkpoints == "" {
		return nil
	}
	file := &checkpoints{path: o.Checkpoints, settings: o.settings()}
	h.Save, h.SaveEvery = file.write, o.CheckpointEvery
	if !o.Continue {
		return file.begin()
	}
	h.Resume, err = file.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the replay begins, which requires empty storage
	}
	return err
}

// flagError returns an error about checkpoints or storage as one that names the flag to
// correct, and other errors unchanged.
func (o *Options) flagError(err error) error {
	switch {
	case errors.Is(err, engine.ErrForeignCheckpoint):
		return &OptionError{Option: "--checkpoints", Problem: o.Checkpoints + " is of other storage than " + o.storage() + ": " + err.Error()}
	case errors.Is(err, load.ErrCannotContinue):
		return &OptionError{Option: "--continue", Problem: "with " + o.Checkpoints + " and " + o.storage() + ": " + err.Error()}
	case errors.Is(err, load.ErrNotEmpty) && o.Continue: // without checkpoints, since with them the storage may have objects
		return &OptionError{Option: "--checkpoints", Problem: o.Checkpoints + " is missing, and " + o.storage() + " is not new: without the watchers' resume points the replay cannot go on"}
	case errors.Is(err, load.ErrNotEmpty):
		return &OptionError{Option: "--backend", Problem: "is " + o.storage() + ", which has been used before: " + err.Error() + ", or add --continue, with its --checkpoints, to go on with the replay that has used it"}
	}
	return err
}

// storage returns what errors call the storage.
func (o *Options) storage() string { return cmp.Or(o.Backend, "the storage") }
