package store

import (
	"context"
	"database/sql/driver"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"
)

// disk is what lies under the database: it may take its time, or fail, whenever something is committed.
type disk struct {
	mu    sync.Mutex
	stall time.Duration
	err   error
}

func (d *disk) set(stall time.Duration, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stall, d.err = stall, err
}

func (d *disk) sync() error {
	d.mu.Lock()
	stall, err := d.stall, d.err
	d.mu.Unlock()
	time.Sleep(stall)
	return err
}

// under puts the disk under the connections.
func (d *disk) under(c driver.Connector) driver.Connector { return diskConnector{c, d} }

type diskConnector struct {
	driver.Connector
	disk *disk
}

func (c diskConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &diskConn{conn.(*sqlite3.SQLiteConn), c.disk}, nil
}

type diskConn struct {
	*sqlite3.SQLiteConn
	disk *disk
}

func (c *diskConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.SQLiteConn.BeginTx(ctx, o)
	return diskTx{tx, c.disk}, err
}

type diskTx struct {
	driver.Tx
	disk *disk
}

func (t diskTx) Commit() error {
	if err := t.disk.sync(); err != nil {
		_ = t.Rollback()
		return err
	}
	return t.Tx.Commit()
}
