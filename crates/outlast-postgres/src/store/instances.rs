//! Sandboxes that were created, or are to be.

use async_trait::async_trait;
use outlast_core::run::ClaimToken;
use outlast_core::{InstanceId, OwnerId};
use outlast_store::{
    BeginReclaim, Instance, InstanceError, Instances, ListInstances, ReclaimEnd, ReclaimError, StoreError,
};

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

    async fn instance_created(&self, instance: &InstanceId) -> Result<(), InstanceError> {
        write!(self.shared, |tx| sql::instance_created(&tx, instance))
    }

    async fn begin_reclaim(&self, request: &BeginReclaim) -> Result<Instance, ReclaimError> {
        write!(self.shared, |tx| sql::begin_reclaim(&tx, request))
    }

    async fn end_reclaim(
        &self,
        instance: &InstanceId,
        owner: &OwnerId,
        end: &ReclaimEnd,
    ) -> Result<(), StoreError> {
        write!(self.shared, |tx| async { sql::end_reclaim(&tx, instance, owner, end).await.map(Ok) })
    }

    async fn list_instances(&self, query: &ListInstances) -> Result<Vec<Instance>, StoreError> {
        let client = self.shared.reader().await?;
        sql::list_instances(&client, query).await.map_err(|failure| failure.told())
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
