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
		c.ownHost.CloseAfter(c.stopped)
		return c.stillRunning(engine.ErrInHandler)
	}
	if err := c.awaitEnd(); err != nil {
		c.ownHost.CloseAfter(c.stopped)
		return err
	}
	return c.ownHost.Close()
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
