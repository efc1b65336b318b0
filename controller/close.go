package controller

import (
	"context"
	"slices"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
)

// beginClose stops the source and the workers, so that no further call begins.
func (c *core) beginClose() {
	c.closing.Do(func() {
		c.cancel(ErrClosed)
		c.queue.ShutDown()
		if c.handler != nil {
			c.handler.Stop(informer.Drop)
		}
		if c.ownInformer != nil {
			c.ownInformer.Stop()
		}
		if c.root == nil {
			c.actorsGone()
		} else {
			c.root.Stop()
		}
	})
}

func (c *core) close() error {
	c.beginClose()
	if actors.InTurn() {
		c.closeHostLater()
		return c.stillRunning(engine.ErrInHandler)
	}
	if err := c.awaitEnd(); err != nil {
		c.closeHostLater()
		return err
	}
	if c.ownHost {
		return c.host.Close()
	}
	return nil
}

// awaitEnd waits until the workers, the handler and the controller's own informer have ended.
func (c *core) awaitEnd() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.host.CloseTimeout())
	defer cancel()
	if err := c.host.Await(ctx, c.stopped); err != nil {
		return c.stillRunning(err)
	}
	if c.handler != nil {
		if err := c.host.Await(ctx, c.handler.Done()); err != nil {
			return c.stillRunning(err)
		}
	}
	if c.ownInformer != nil {
		return c.ownInformer.Close()
	}
	return nil
}

// closeHostLater closes the controller's own host in the background, when all that runs on
// it has ended: the workers, Keys, and calls to the source.
func (c *core) closeHostLater() {
	if !c.ownHost {
		return
	}
	c.closingHost.Do(func() {
		go func() {
			_ = c.host.Close() // which may give up
			<-engine.SystemOf(c.host).Stopped()
			_ = c.host.Close()
		}()
	})
}

func (c *core) stillRunning(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &CloseError{Controller: c.cfg.name, Cause: cause}
	for key := range c.running {
		e.Keys = append(e.Keys, key)
	}
	slices.Sort(e.Keys)
	return e
}

// actorsGone lets close return: all workers have stopped.
func (c *core) actorsGone() { c.stoppedOnce.Do(func() { close(c.stopped) }) }
