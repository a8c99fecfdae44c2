//! The clients, with one connection each and otherwise default settings.

use anyhow::{Context, Result};
use fred::prelude::{ClientLike, KeysInterface};
use rustis::client::BatchPreparedCommand;
use rustis::commands::StringCommands;
use std::future::Future;
use std::time::Duration;

/// The command timeout, for clients whose default is short.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A client that many tasks share.
pub(crate) trait Subject: Clone + Send + Sync + Sized + 'static {
    fn connect(server: &str) -> impl Future<Output = Result<Self>>;
    fn set(&self, key: &str, value: &str) -> impl Future<Output = Result<()>> + Send;
    /// Sets all pairs in one explicit pipeline.
    fn set_many(&self, pairs: &[(&str, &str)]) -> impl Future<Output = Result<()>> + Send;
    fn get(&self, key: &str) -> impl Future<Output = Result<Vec<u8>>> + Send;

    /// Reads a large value, with the client's special method for large values if it has one.
    fn get_large(&self, key: &str) -> impl Future<Output = Result<Vec<u8>>> + Send {
        self.get(key)
    }
}

#[derive(Clone)]
pub(crate) struct Brisk(brisk::Client);

impl Subject for Brisk {
    async fn connect(server: &str) -> Result<Brisk> {
        let client = brisk::Client::builder(server).lanes(brisk::Lanes::Count(1));
        Ok(Brisk(client.connect().await?))
    }

    async fn set(&self, key: &str, value: &str) -> Result<()> {
        self.0.set(key, value).await?;
        Ok(())
    }

    async fn set_many(&self, pairs: &[(&str, &str)]) -> Result<()> {
        let sets: Vec<_> = pairs.iter().map(|(key, value)| brisk::commands::set(*key, *value)).collect();
        self.0.batch(sets).await?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>> {
        Ok(self.0.get::<Vec<u8>>(key).required().await?)
    }

    async fn get_large(&self, key: &str) -> Result<Vec<u8>> {
        Ok(self.0.bulk().get::<Vec<u8>>(key).required().await?)
    }
}

#[derive(Clone)]
pub(crate) struct Redis(redis::aio::MultiplexedConnection);

impl Subject for Redis {
    async fn connect(server: &str) -> Result<Redis> {
        let client = redis::Client::open(format!("redis://{server}"))?;
        // The default is half a second, which may be too short on a busy machine.
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(TIMEOUT));
        Ok(Redis(client.get_multiplexed_async_connection_with_config(&config).await?))
    }

    async fn set(&self, key: &str, value: &str) -> Result<()> {
        let mut connection = self.0.clone();
        Ok(redis::cmd("SET").arg(key).arg(value).query_async(&mut connection).await?)
    }

    async fn set_many(&self, pairs: &[(&str, &str)]) -> Result<()> {
        let mut connection = self.0.clone();
        let mut pipe = redis::pipe();
        for (key, value) in pairs {
            pipe.cmd("SET").arg(*key).arg(*value).ignore();
        }
        Ok(pipe.query_async(&mut connection).await?)
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>> {
        let mut connection = self.0.clone();
        let value: Option<Vec<u8>> = redis::cmd("GET").arg(key).query_async(&mut connection).await?;
        value.context("no value")
    }
}

#[derive(Clone)]
pub(crate) struct Fred(fred::prelude::Client);

impl Subject for Fred {
    async fn connect(server: &str) -> Result<Fred> {
        let config = fred::prelude::Config::from_url(&format!("redis://{server}"))?;
        let client = fred::prelude::Builder::from_config(config).build()?;
        client.init().await?;
        Ok(Fred(client))
    }

    async fn set(&self, key: &str, value: &str) -> Result<()> {
        Ok(self.0.set(key, value, None, None, false).await?)
    }

    async fn set_many(&self, pairs: &[(&str, &str)]) -> Result<()> {
        let pipeline = self.0.pipeline();
        for (key, value) in pairs {
            let _: () = pipeline.set(*key, *value, None, None, false).await?;
        }
        let _: Vec<fred::types::Value> = pipeline.all().await?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>> {
        let value: Option<Vec<u8>> = self.0.get(key).await?;
        value.context("no value")
    }
}

#[derive(Clone)]
pub(crate) struct Rustis(rustis::client::Client);

impl Subject for Rustis {
    async fn connect(server: &str) -> Result<Rustis> {
        Ok(Rustis(rustis::client::Client::connect(format!("redis://{server}")).await?))
    }

    async fn set(&self, key: &str, value: &str) -> Result<()> {
        Ok(self.0.set(key, value).await?)
    }

    async fn set_many(&self, pairs: &[(&str, &str)]) -> Result<()> {
        let mut pipeline = self.0.create_pipeline();
        for (key, value) in pairs {
            pipeline.set(*key, *value).forget();
        }
        Ok(pipeline.execute::<()>().await?)
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>> {
        let value: Option<String> = self.0.get(key).await?;
        Ok(value.context("no value")?.into_bytes())
    }
}
