//! Sandboxes that were created, or are to be.

use async_trait::async_trait;
use outlast_core::InstanceId;
use outlast_core::run::ClaimToken;
use outlast_store::{Instance, InstanceError, InstanceState, Instances, StoreError};

use super::handle::{PostgresStore, write};
use crate::sql;

#[async_trait]
impl Instances for PostgresStore {
    async fn create_instance(&self, token: &ClaimToken, instance: &Instance) -> Result<(), InstanceError> {
        write!(self.shared, |tx| sql::create_instance(&tx, token, instance))
    }

    async fn use_instance(&self, token: &ClaimToken, instance: &InstanceId) -> Result<(), InstanceError> {
        write!(self.shared, |tx| sql::use_instance(&tx, token, instance))
    }

    async fn set_instance_state(
        &self,
        instance: &InstanceId,
        state: InstanceState,
    ) -> Result<(), InstanceError> {
        write!(self.shared, |tx| sql::set_instance_state(&tx, instance, state))
    }

    async fn instance(&self, instance: &InstanceId) -> Result<Option<Instance>, StoreError> {
        let client = self.shared.reader().await?;
        sql::instance(&client, instance).await.map_err(|failure| failure.told())
    }

    async fn find_instance(
        &self,
        sandbox_key: &str,
        machine: Option<&str>,
    ) -> Result<Option<Instance>, StoreError> {
        let client = self.shared.reader().await?;
        sql::find_instance(&client, sandbox_key, machine).await.map_err(|failure| failure.told())
    }
}
